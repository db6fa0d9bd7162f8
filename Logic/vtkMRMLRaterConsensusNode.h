// SPDX-License-Identifier: Apache-2.0
/// What the Rater Consensus module knows about one case: inputs, choices, and where the results are. Saved with the scene.
///
/// From Python:
///   node = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLRaterConsensusNode")
///   node.SetImageNodeID(volume.GetID())
///   node.AddSegment("Anna", segmentation.GetID(), "Segment_1")
///   node.AddLabelMap("Ben", labelmap.GetID(), 3)       # 0: whatever is not 0
#ifndef vtkMRMLRaterConsensusNode_h
#define vtkMRMLRaterConsensusNode_h

#include <string>
#include <vector>

#include "vtkMRMLNode.h"
#include "vtkSlicerRaterConsensusModuleLogicExport.h"

class VTK_SLICER_RATERCONSENSUS_MODULE_LOGIC_EXPORT vtkMRMLRaterConsensusNode : public vtkMRMLNode
{
public:
  static vtkMRMLRaterConsensusNode* New();
  vtkTypeMacro(vtkMRMLRaterConsensusNode, vtkMRMLNode);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  vtkMRMLNode* CreateNodeInstance() override;
  const char* GetNodeTagName() override { return "RaterConsensus"; }
  void ReadXMLAttributes(const char** atts) override;
  void WriteXML(ostream& of, int indent) override;
  vtkMRMLCopyContentMacro(vtkMRMLRaterConsensusNode);

  /// \name The image that raters looked at
  ///@{
  void SetImageNodeID(const char* id);
  const char* GetImageNodeID();
  ///@}

  /// \name The raters, in order
  ///@{
  /// A segment of a segmentation node.
  void AddSegment(const std::string& name, const char* segmentationNodeID, const std::string& segmentID);
  /// All of a segmentation node: its segments are the structures that the rater tells apart, by name.
  void AddSegmentation(const std::string& name, const char* segmentationNodeID);
  /// A label map volume; `value` is what the rater's label is, 0: whatever is not 0.
  void AddLabelMap(const std::string& name, const char* labelMapNodeID, int value);
  void RemoveNthRater(int n);
  void RemoveAllRaters();
  int GetNumberOfRaters() const;
  std::string GetNthRaterName(int n) const;
  void SetNthRaterName(int n, const std::string& name);
  std::string GetNthRaterSegmentID(int n) const; ///< empty for a label map and for a whole segmentation
  int GetNthRaterValue(int n) const;
  vtkMRMLNode* GetNthRaterNode(int n); ///< null when it has left the scene
  ///@}

  /// \name Raters
  ///@{
  /// Whether masks of another geometry are resampled to the image's; otherwise they are refused. Segments always are.
  vtkGetMacro(Resample, bool);
  vtkSetMacro(Resample, bool);
  vtkBooleanMacro(Resample, bool);
  /// Whether agreement measures surface distances too; default: yes.
  vtkGetMacro(Surfaces, bool);
  vtkSetMacro(Surfaces, bool);
  vtkBooleanMacro(Surfaces, bool);
  ///@}

  /// \name Consensus
  ///@{
  /// As `rater-consensus fuse --method` takes it: orc, random, median, soft, soft-gaussian, staple, simple, svls.
  vtkGetMacro(Method, std::string);
  vtkSetMacro(Method, std::string);
  vtkGetMacro(Sigma, double);
  vtkSetMacro(Sigma, double);
  vtkGetMacro(TieBackground, bool);
  vtkSetMacro(TieBackground, bool);
  vtkBooleanMacro(TieBackground, bool);
  ///@}

  /// \name Model
  ///@{
  vtkGetMacro(ModelFile, std::string);
  vtkSetMacro(ModelFile, std::string);
  /// Empty: the model's own. Otherwise majority, expected or at-least:T.
  vtkGetMacro(Readout, std::string);
  vtkSetMacro(Readout, std::string);
  /// Where raters or a model tell several structures apart: the one that everything is about; empty: the first.
  vtkGetMacro(Structure, std::string);
  vtkSetMacro(Structure, std::string);
  /// Of the mask.
  vtkGetMacro(Threshold, double);
  vtkSetMacro(Threshold, double);
  ///@}

  /// \name Calibration
  ///@{
  /// whole, box, band or disputed.
  vtkGetMacro(Region, std::string);
  vtkSetMacro(Region, std::string);
  vtkGetMacro(Bins, int);
  vtkSetMacro(Bins, int);
  /// temperature, platt, beta or isotonic; and the file that holds a correction.
  vtkGetMacro(RecalibrationMethod, std::string);
  vtkSetMacro(RecalibrationMethod, std::string);
  vtkGetMacro(RecalibrationFile, std::string);
  vtkSetMacro(RecalibrationFile, std::string);
  /// Whether predictions are corrected by that file; default: no.
  vtkGetMacro(Corrected, bool);
  vtkSetMacro(Corrected, bool);
  vtkBooleanMacro(Corrected, bool);
  ///@}

  /// \name Training
  ///@{
  /// The cases (parameter nodes) of the scene to learn from; none: all that can be used.
  void AddTrainingCase(const char* parameterNodeID);
  void RemoveAllTrainingCases();
  int GetNumberOfTrainingCases();
  vtkMRMLRaterConsensusNode* GetNthTrainingCase(int n);
  /// A data list to learn from instead of the scene's cases.
  vtkGetMacro(DataListFile, std::string);
  vtkSetMacro(DataListFile, std::string);
  vtkGetMacro(TrainedModelFile, std::string);
  vtkSetMacro(TrainedModelFile, std::string);
  vtkGetMacro(TrainingMinutes, double);
  vtkSetMacro(TrainingMinutes, double);
  /// As `rater-consensus train --strategy` and `--net` take them; empty: those of the model, or the usual ones. A model that is
  /// trained on keeps its network.
  vtkGetMacro(Strategy, std::string);
  vtkSetMacro(Strategy, std::string);
  vtkGetMacro(Network, std::string);
  vtkSetMacro(Network, std::string);
  ///@}

  /// \name How results are shown
  ///@{
  /// Maps are clear where fewer raters mark, or a smaller probability says so, than this share of all; default: 0.05.
  vtkGetMacro(TransparentBelow, double);
  vtkSetMacro(TransparentBelow, double);
  /// Whether "at least k raters" are surfaces in 3-D views; default: no.
  vtkGetMacro(LevelsIn3D, bool);
  vtkSetMacro(LevelsIn3D, bool);
  vtkBooleanMacro(LevelsIn3D, bool);
  /// The role of the map that is over the image: heatmap or probability.
  vtkGetMacro(ShownRole, std::string);
  vtkSetMacro(ShownRole, std::string);
  ///@}

  /// \name Results
  ///@{
  /// Roles of node references; a second run fills the same nodes again.
  static const char* GetHeatmapRole() { return "heatmap"; }
  static const char* GetProbabilityRole() { return "probability"; }
  static const char* GetLevelRole() { return "level"; } ///< K + 1 of them, in order
  static const char* GetMaskRole() { return "mask"; }
  static const char* GetVolumesRole() { return "volumes"; }
  static const char* GetAgreementRole() { return "agreement"; }
  static const char* GetDisputesRole() { return "disputes"; }
  static const char* GetFiguresRole() { return "figures"; }
  static const char* GetReliabilityRole() { return "reliability"; }
  static const char* GetSeriesRole() { return "series"; }
  static const char* GetChartRole() { return "chart"; }
  static const char* GetCurvesRole() { return "curves"; }   ///< all that is known of the diagrams, to draw them again
  static const char* GetVisitedRole() { return "visited"; } ///< the box around the disputed region that is visited
  ///@}

  static const char* GetTrainingCaseRole() { return "trainingCase"; }

protected:
  vtkMRMLRaterConsensusNode();
  ~vtkMRMLRaterConsensusNode() override;
  vtkMRMLRaterConsensusNode(const vtkMRMLRaterConsensusNode&) = delete;
  void operator=(const vtkMRMLRaterConsensusNode&) = delete;

private:
  struct Rater
  {
    std::string Name, SegmentID;
    int Value = 0;
  };
  void AddRater(const Rater& rater, const char* nodeID);
  // One string for the scene file; the nodes are references.
  std::string GetRaters() const;
  void SetRaters(const std::string& text);

  std::vector<Rater> Raters;
  bool Resample = false, Surfaces = true;
  std::string Method = "orc";
  double Sigma = 1;
  bool TieBackground = false;
  std::string ModelFile, Readout, Structure;
  double Threshold = 0.5;
  std::string Region = "box";
  int Bins = 15;
  std::string RecalibrationMethod = "temperature", RecalibrationFile;
  bool Corrected = false;
  std::string DataListFile, TrainedModelFile;
  double TrainingMinutes = 2;
  std::string Strategy, Network;
  double TransparentBelow = 0.05;
  bool LevelsIn3D = false;
  std::string ShownRole = "heatmap";
};

#endif
