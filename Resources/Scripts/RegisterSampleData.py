# SPDX-License-Identifier: Apache-2.0
# Run once by the module when Slicer has started: the example case in the Sample Data module, which only Python can reach.
def registerRaterConsensusSample():
    import os
    import slicer
    try:
        import SampleData
    except ImportError:
        return  # a Slicer without that module
    category = "Rater Consensus"
    if getattr(slicer.modules, "sampleDataSources", {}).get(category):
        return
    picture = os.path.join(slicer.modules.raterconsensus.logic().GetModuleShareDirectory(), "RaterConsensus.png")
    SampleData.SampleDataLogic.registerCustomSampleDataSource(
        category=category,
        sampleName="Five raters who disagree",
        uris="",  # nothing is downloaded, but Slicer up to 5.6 wants lists of one length
        fileNames="",
        nodeNames="Five raters who disagree",
        thumbnailFileName=picture if os.path.exists(picture) else None,
        customDownloader=lambda source: slicer.modules.raterconsensus.logic().AddExampleCase())


registerRaterConsensusSample()
del registerRaterConsensusSample
