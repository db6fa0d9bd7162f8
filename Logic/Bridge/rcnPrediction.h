// SPDX-License-Identifier: Apache-2.0
/// From a model and an image to maps in the image's own geometry.
#ifndef rcnPrediction_h
#define rcnPrediction_h

#include <string>
#include <vector>

#include "rcn/rcn_predict.h"
#include "rcnImageIO.h"
#include "rcnModel.h"
#include "rcnPredictionFolder.h"
#include "rcnStructureMaps.h"

namespace rcn
{

struct PredictionOptions
{
  rcn_predict_options Tiles = RCN_PREDICT_OPTIONS_INIT;
  std::string Readout;                       ///< empty: the model's own
  const Recalibration* Correction = nullptr; ///< instead of the model's own, which a remark says
  bool Recalibrate = true;                   ///< false: neither of them
  double Threshold = 0.5;                    ///< of the mask
  bool Uncertainty = false;                  ///< whether the entropy of the levels is wanted, of several structures that of
                                             ///< the labels
  bool Levels = true;                        ///< whether the levels of one structure are wanted: takes less memory if not
  std::string Structure;                     ///< one of several, predicted as if it were the only one; empty: all
};

struct Prediction
{
  Volume Levels; ///< float32, K + 1 components. Not there when they are not wanted, but where leaving
    ///< them out saves nothing; nor when a correction is for one probability: levels that do not fit the probability
    ///< beside them would be judged in its place
  Volume Probability; ///< float32, the readout
  Volume Mask;        ///< uint8
  Volume Uncertainty; ///< float32, bits; only when wanted
  std::string Readout;
  PredictedVolumes Volumes; ///< of the levels, or of the probability where there are none
  int64_t Tiles = 0;
  std::vector<std::string> Remarks; ///< what a person should know, e.g. that the volume was resampled

  // Of several structures there are neither Levels nor Mask nor Volumes, and Probability has a component for each. Instead:
  std::vector<Structure> StructureList;            ///< which they are; empty: there is one
  std::shared_ptr<const StructureMaps> Structures; ///< Structures->Of() gives the levels of one; null: there is one
  Volume Labels;                                   ///< uint8: the most probable label, by LabelValues()
  std::vector<PredictedVolumes> StructureVolumes;
};

/// A map as a file holds it.
struct NamedMap
{
  std::string Name; ///< as PredictionFolder::FileFor() takes it
  Volume Map;
  Content What;
  std::vector<Segment> Segments; ///< names of labels
  std::string Structure;         ///< of several, the one whose levels these are; otherwise empty
};

/// The maps of a prediction in the order in which they are written. `levels`: whether those of several structures are wanted
/// that their shares tell already.
std::vector<NamedMap> MapsOf(const Prediction& prediction, rcn_context* context, int raters, bool levels);

/// All channels of an image's files, in order. The volumes must outlive them.
std::vector<rcn_channel> ChannelsOf(const std::vector<Volume>& images);

/// Whether voxels differ by more than rounding in a header.
bool OtherSpacing(const double a[3], const double b[3]);

/// The scale of an image by a model's rule: always of the image as it was read, before anything is resampled, so that a
/// network sees in use what it saw in training. Throws Error; `about` names the image.
rcn_scale FitScale(
  rcn_context* context, const rcn_normalize& rule, const std::vector<Volume>& images, const std::string& about);

/// A network and how it sees an image.
struct LevelsOptions
{
  rcn_net* Net = nullptr;
  const rcn_loss* Loss = nullptr;
  const float* LossParameters = nullptr; ///< null: it has none
  const rcn_normalize* Normalization = nullptr;
  const double* Spacing = nullptr;            ///< mm: the image is resampled to it and the levels back; null: as it is
  const rcn_predict_options* Tiles = nullptr; ///< null: the defaults
  int64_t* TileCount = nullptr;               ///< how many there were; null: not wanted
};

/// The levels of an image that lies along the network's axes: predictions and the validation of a training in one way.
Volume PredictLevels(
  rcn_context* context, const LevelsOptions& options, const std::vector<Volume>& images, const std::string& about);

/// The same for a network of several structures.
StructureMaps PredictStructures(
  rcn_context* context, const LevelsOptions& options, const std::vector<Volume>& images, const std::string& about);

/// How a run with these options makes its maps, for the folder where they go (rcnPredictionFolder.h).
PredictionRun RunOf(const Model& model, const PredictionOptions& options);

/// Throws the Error that Predict() would throw because of the options alone.
void CheckPrediction(const Model& model, const PredictionOptions& options);

/// Predicts one image (its files' channels in order; ReadImages()). A volume is brought to the axes of training, and the
/// maps back. A 2-D network goes through it slice by slice; for a 3-D network the volume is resampled to the spacing it
/// was trained on, and the levels back. Throws Error,
/// RCN_EDATA when the image is not one the model can take; `about` names it.
Prediction Predict(const Model& model, rcn_context* context, const std::vector<Volume>& images, const std::string& about,
  const PredictionOptions& options);

/// masks[k - 1] (uint8): where at least k raters mark, by the threshold on that probability. Each lies inside the one before.
std::vector<Volume> LevelMasks(rcn_context* context, const Volume& levels, double threshold);

} // namespace rcn

#endif
