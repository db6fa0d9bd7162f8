// SPDX-License-Identifier: Apache-2.0
#include "qRcnScene.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <QSignalBlocker>

#include "qRcnJob.h"
#include "qRcnStyle.h"
#include "rcnError.h"

namespace
{

/// None of a map that is no probability somewhere, which can be shown all the same.
rcn::PredictedVolumes MeasureVolumes(rcn_context* context, const rcn::Volume& map, int raters, const rcn::VolumeScores* scores)
{
  try
  {
    return raters > 0 ? rcn::PredictVolumes(context, map, raters, scores, "The prediction") : rcn::PredictedVolumes();
  }
  catch (const rcn::Error& error)
  {
    if (error.Status() != RCN_EDATA)
    {
      throw;
    }
    return {};
  }
}

/// Voxels are compared one by one, so the grids must have the same size; whether they lie at the same place was checked by
/// whoever read the files.
void RequireSize(const rcn_geometry& geometry, const rcn_geometry& other, const char* what)
{
  if (!std::equal(geometry.size, geometry.size + 3, other.size))
  {
    throw rcn::Error(RCN_EGEOMETRY, std::string(what) + " another number of voxels than the case.");
  }
}

/// Of a prediction.
void RequireFloat(const rcn_geometry& geometry, const rcn::Volume& volume)
{
  RequireSize(geometry, volume.Geometry(), "The prediction has");
  if (volume.View().type != RCN_FLOAT32)
  {
    throw rcn::Error(RCN_EINVALID, "A prediction must be float32 to be shown.");
  }
}

} // namespace

std::unique_ptr<rcn_context, rcn::ContextDeleter> qRcnScene::makeContext(int threads)
{
  rcn_context* context = nullptr;
  rcn_context_options options = RCN_CONTEXT_OPTIONS_INIT;
  options.threads = threads;
  if (rcn_context_create(&context, &options) != RCN_OK)
  {
    throw std::bad_alloc();
  }
  return std::unique_ptr<rcn_context, rcn::ContextDeleter>(context);
}

qRcnScene::qRcnScene(QObject* parent)
  // A slice is drawn in less time than threads take to be woken and to fall asleep again.
  : QObject(parent), Context(makeContext(1)), Counting(new qRcnJob(this))
{
}

qRcnScene::~qRcnScene() = default;

// The one way a property changes: nobody is told where nothing did, so that views and panels may set each other without going
// round in circles.
template <class T> void qRcnScene::set(T& member, const T& value, Changes what)
{
  if (member == value)
  {
    return;
  }
  member = value;
  if (what & Overlay)
  {
    this->PatternColors.clear();
  }
  emit this->changed(what);
}

// ---- the case

void qRcnScene::setCase(const std::vector<rcn::Volume>& images, std::shared_ptr<const rcn_votes> votes,
  const rcn_geometry& geometry, const QStringList& raters)
{
  // All checks first: a case that is refused leaves the one before as it is.
  if (const char* sentence = rcn_geometry_check(&geometry))
  {
    throw rcn::Error(RCN_EGEOMETRY, sentence);
  }
  for (const rcn::Volume& image : images)
  {
    RequireSize(geometry, image.Geometry(), "The image has");
  }
  if (votes)
  {
    RequireSize(geometry, *rcn_votes_geometry(votes.get()), "The raters' masks have");
  }
  this->Geometry = geometry;
  this->Images = images;
  this->Answers = std::move(votes);
  this->Outlines.clear();
  this->RaterNames = raters;
  this->RaterColors.clear();
  for (int r = 0; r < this->raterCount(); ++r)
  {
    this->RaterColors.push_back(qRcnStyle::raterColor(r));
    if (r >= this->RaterNames.size())
    {
      this->RaterNames << tr("Rater %1").arg(r + 1);
    }
  }
  this->HiddenRaters = 0;
  if (this->IsolatedLevel > this->raterCount())
  {
    this->IsolatedLevel = -1;
  }
  this->PredictionList.clear();
  this->ShownPrediction = -1;
  this->HighlightLower = this->HighlightUpper = -1;
  this->PatternColors.clear();
  for (size_t a = 0; a < 3; ++a)
  {
    this->CursorVoxel[a] = geometry.size[a] / 2;
  }
  {
    // One signal for all of it, below.
    const QSignalBlocker quiet(this);
    this->resetWindow();
    this->resetPlace();
  }
  emit this->changed(Case | Cursor | Image | Overlay | Contours | Predictions | Place);
  this->measureVolume();
}

// The same raters about another structure: what is shown stays, such as hidden raters and the place; only colors and outlines
// are made anew.
void qRcnScene::setVotes(std::shared_ptr<const rcn_votes> votes)
{
  if (votes == this->Answers)
  {
    return;
  }
  if (!votes || !this->Answers || rcn_votes_present(votes.get()) != rcn_votes_present(this->Answers.get()) ||
    rcn_votes_raters(votes.get()) != this->raterCount())
  {
    throw rcn::Error(RCN_EINVALID, "The masks belong to different raters.");
  }
  RequireSize(this->Geometry, *rcn_votes_geometry(votes.get()), "The raters' masks have");
  this->Answers = std::move(votes);
  this->Outlines.clear();
  this->PatternColors.clear();
  emit this->changed(Votes | Overlay | Contours);
}

void qRcnScene::clear()
{
  this->Geometry = rcn_geometry{};
  this->Images.clear();
  this->Answers.reset();
  this->Outlines.clear();
  this->RaterNames.clear();
  this->RaterColors.clear();
  this->PredictionList.clear();
  this->ShownPrediction = -1;
  this->HighlightLower = this->HighlightUpper = -1;
  this->PatternColors.clear();
  this->CursorVoxel = {};
  this->Zoom = 1;
  this->Center = {};
  emit this->changed(Case | Cursor | Image | Overlay | Contours | Predictions | Place);
  this->measureVolume();
}

// An image of one slice can be looked at from one side only.
int qRcnScene::onlyView() const
{
  rcn_plane plane;
  const int thin = this->isEmpty() ? -1 : rcn_geometry_thin_axis(&this->Geometry);
  return thin < 0 ? -1 : rcn_plane_along(&plane, &this->Geometry, thin);
}

bool qRcnScene::isRaterPresent(int rater) const
{
  return rater >= 0 && rater < this->raterCount() && (rcn_votes_present(this->Answers.get()) >> rater & 1);
}

// The first channel, or colors as a whole (-1). A view that is kept here, because callers get a pointer.
const rcn_image* qRcnScene::shownImage(int* component) const
{
  if (this->Images.empty())
  {
    return nullptr;
  }
  const rcn::Volume& image = this->Images.front();
  *component = image.IsColor() ? -1 : image.GetChannel(0).Component;
  this->ShownImage = image.IsColor() ? image.View() : image.GetChannel(0).Image;
  return &this->ShownImage;
}

// Written so that NaN is refused, too.
void qRcnScene::setWindow(double black, double white)
{
  if (!std::isfinite(black) || !std::isfinite(white) || !(black < white) || (black == this->Black && white == this->White))
  {
    return;
  }
  this->Black = black;
  this->White = white;
  emit this->changed(Image);
}

void qRcnScene::resetWindow()
{
  int component = 0;
  const rcn_image* image = this->shownImage(&component);
  double black = 0, white = 1;
  if (image && component < 0 && image->type == RCN_UINT8)
  {
    white = 255; // colors are meant as they are
  }
  else if (image)
  {
    rcn::Check(rcn_slice_window(&black, &white, this->context(), image, std::max(component, 0)), this->context());
  }
  this->Lowest = black;
  this->Highest = white;
  this->setWindow(black, white);
}

bool qRcnScene::hasGrayImage() const
{
  int component = 0;
  return this->shownImage(&component) && component >= 0;
}

// Width and level in Hounsfield units.
const std::vector<qRcnScene::WindowPreset>& qRcnScene::windowPresets()
{
  static const std::vector<WindowPreset> presets = {
    { "lung", QT_TR_NOOP("Lung"), 1400, -500 },
    { "bone", QT_TR_NOOP("Bone"), 1000, 400 },
    { "brain", QT_TR_NOOP("Brain"), 100, 50 },
    { "abdomen", QT_TR_NOOP("Abdomen"), 350, 40 },
  };
  return presets;
}

void qRcnScene::setWindowPreset(const WindowPreset& preset)
{
  if (this->hasGrayImage())
  {
    this->setWindow(preset.Level - preset.Window / 2, preset.Level + preset.Window / 2);
  }
}

// ---- zoom and place

void qRcnScene::setPlace(double zoom, const std::array<double, 3>& center)
{
  // From one voxel that fills a good part of a view to a view that is mostly empty.
  const double largest = 64, smallest = 0.2;
  const double inside = std::clamp(zoom, smallest, largest);
  if (this->isEmpty() || (inside == this->Zoom && center == this->Center))
  {
    return;
  }
  this->Zoom = inside;
  this->Center = center;
  emit this->changed(Place);
}

void qRcnScene::resetPlace()
{
  std::array<double, 3> middle{};
  for (size_t a = 0; a < 3; ++a)
  {
    middle[a] = static_cast<double>(this->Geometry.size[a] - 1) / 2;
  }
  this->setPlace(1, middle);
}

// ---- the cursor

void qRcnScene::setCursor(const Voxel& voxel)
{
  if (this->isEmpty())
  {
    return;
  }
  Voxel inside;
  for (size_t a = 0; a < 3; ++a)
  {
    inside[a] = std::clamp<int64_t>(voxel[a], 0, this->Geometry.size[a] - 1);
  }
  this->set(this->CursorVoxel, inside, Cursor);
}

// Unlike a move of the cursor by hand, this asks the views to bring the voxel into sight.
void qRcnScene::visit(const Voxel& voxel, int axis)
{
  this->setCursor(voxel);
  emit this->visited(axis);
}

// ITK has LPS; a 2-D picture has no sides of a body, and keeps its axes.
std::array<double, 3> qRcnScene::rasOf(const Voxel& voxel) const
{
  const double index[3] = { static_cast<double>(voxel[0]), static_cast<double>(voxel[1]), static_cast<double>(voxel[2]) };
  std::array<double, 3> world{};
  rcn_geometry_to_world(world.data(), &this->Geometry, index);
  if (this->Geometry.dimension == 3)
  {
    world[0] = -world[0];
    world[1] = -world[1];
  }
  return world;
}

void qRcnScene::setCursorRas(const std::array<double, 3>& ras)
{
  if (this->isEmpty())
  {
    return;
  }
  const double sign = this->Geometry.dimension == 3 ? -1 : 1;
  const double world[3] = { sign * ras[0], sign * ras[1], ras[2] };
  double index[3];
  rcn_geometry_to_index(index, &this->Geometry, world);
  Voxel voxel{};
  for (size_t a = 0; a < 3; ++a)
  {
    // Clamped before rounding: a number that a long cannot hold would be undefined.
    voxel[a] = std::isfinite(index[a]) ? static_cast<int64_t>(std::lround(std::clamp(index[a], -1e9, 1e9))) : 0;
  }
  this->setCursor(voxel);
}

void qRcnScene::setCrosshairVisible(bool visible)
{
  this->set(this->CrosshairVisible, visible, Cursor);
}

void qRcnScene::setColorBarVisible(bool visible)
{
  this->set(this->ColorBarVisible, visible, Cursor);
}

// ---- raters and their consensus

QColor qRcnScene::raterColor(int rater) const
{
  return rater >= 0 && rater < this->raterCount() ? this->RaterColors[static_cast<size_t>(rater)] : QColor();
}

void qRcnScene::setRaterColor(int rater, const QColor& color)
{
  if (rater >= 0 && rater < this->raterCount() && color.isValid())
  {
    this->set(this->RaterColors[static_cast<size_t>(rater)], color, Contours);
  }
}

bool qRcnScene::isRaterVisible(int rater) const
{
  return this->isRaterPresent(rater) && !(this->HiddenRaters >> rater & 1);
}

uint64_t qRcnScene::visibleRaters() const
{
  return this->Answers ? rcn_votes_present(this->Answers.get()) & ~this->HiddenRaters : 0;
}

void qRcnScene::setRaterVisible(int rater, bool visible)
{
  if (rater >= 0 && rater < this->raterCount())
  {
    const uint64_t bit = uint64_t{ 1 } << rater;
    this->set(this->HiddenRaters, visible ? this->HiddenRaters & ~bit : this->HiddenRaters | bit, Contours);
  }
}

void qRcnScene::setContoursVisible(bool visible)
{
  this->set(this->ContoursVisible, visible, Contours);
}

void qRcnScene::setHeatMapVisible(bool visible)
{
  this->set(this->HeatMapVisible, visible, Overlay);
}

void qRcnScene::setHeatMapOpacity(double opacity)
{
  this->set(this->HeatMapOpacity, std::clamp(opacity, 0.0, 1.0), Overlay);
}

void qRcnScene::setIsolatedLevel(int level)
{
  this->set(this->IsolatedLevel, level >= 0 && level <= this->raterCount() ? level : -1, Overlay);
}

void qRcnScene::setLevelPalette(rcn_palette palette)
{
  this->set(this->LevelPalette, palette, Overlay | Contours);
}

void qRcnScene::setOutlines(const std::vector<Outline>& outlines)
{
  for (const Outline& outline : outlines)
  {
    if (outline.Table.empty())
    {
      RequireFloat(this->Geometry, outline.Map);
    }
    else if (!this->Answers || static_cast<int64_t>(outline.Table.size()) != rcn_votes_pattern_count(this->Answers.get()))
    {
      throw rcn::Error(RCN_EINVALID, "The outline belongs to other masks.");
    }
  }
  // None before and none now: nobody has to draw.
  if (!outlines.empty() || !this->Outlines.empty())
  {
    this->Outlines = outlines;
    emit this->changed(Contours);
  }
}

QVector<double> qRcnScene::levelVolumes() const
{
  QVector<double> volumes;
  if (this->Answers)
  {
    volumes.fill(0, qRcnStyle::countRaters(rcn_votes_present(this->Answers.get())) + 1);
    const rcn_pattern* patterns = rcn_votes_patterns(this->Answers.get());
    for (int64_t p = 0; p < rcn_votes_pattern_count(this->Answers.get()); ++p)
    {
      // The table also has patterns that no voxel carries, with marks of raters who did not answer.
      if (patterns[p].voxels > 0)
      {
        volumes[qRcnStyle::countRaters(patterns[p].marked)] +=
          static_cast<double>(patterns[p].voxels) * this->extent().PerVoxel;
      }
    }
  }
  return volumes;
}

// A color for each pattern of votes instead of one for each voxel: a slice is painted by looking codes up. Invalid means
// transparent.
std::vector<uint8_t> qRcnScene::colorPatterns(const std::function<QColor(const rcn_pattern&)>& color) const
{
  const rcn_pattern* patterns = rcn_votes_patterns(this->Answers.get());
  const auto count = static_cast<size_t>(rcn_votes_pattern_count(this->Answers.get()));
  const auto opacity = static_cast<uint8_t>(std::lround(255 * this->HeatMapOpacity));
  std::vector<uint8_t> colors(4 * count, 0);
  for (size_t p = 0; p < count; ++p)
  {
    const QColor own = color(patterns[p]);
    if (own.isValid())
    {
      const uint8_t rgba[4] = { static_cast<uint8_t>(own.red()), static_cast<uint8_t>(own.green()),
        static_cast<uint8_t>(own.blue()), opacity };
      std::copy(rgba, rgba + 4, colors.begin() + static_cast<std::ptrdiff_t>(4 * p));
    }
  }
  return colors;
}

// Made when it is asked for, and kept until colors or votes change (set).
const std::vector<uint8_t>& qRcnScene::patternColors() const
{
  if (this->PatternColors.empty() && this->Answers)
  {
    this->PatternColors = this->colorPatterns([this](const rcn_pattern& pattern) {
      const int marked = qRcnStyle::countRaters(pattern.marked), answered = qRcnStyle::countRaters(pattern.answered);
      const bool shown = this->IsolatedLevel >= 0 ? marked == this->IsolatedLevel : marked > 0;
      return shown ? qRcnStyle::levelColor(this->LevelPalette, answered > 0 ? static_cast<double>(marked) / answered : 0)
                   : QColor();
    });
  }
  return this->PatternColors;
}

std::vector<uint8_t> qRcnScene::raterColors(int rater) const
{
  return this->colorPatterns(
    [this, rater](const rcn_pattern& pattern) { return pattern.marked >> rater & 1 ? this->raterColor(rater) : QColor(); });
}

// ---- predictions

// A name that is there already is replaced in its place, so that numbers of others stay.
int qRcnScene::addPrediction(const QString& name, const rcn::Volume& levels, const rcn::Volume& probability)
{
  for (const rcn::Volume* volume : { &levels, &probability })
  {
    if (volume->Data())
    {
      RequireFloat(this->Geometry, *volume);
    }
  }
  if (!levels.Data() && !probability.Data())
  {
    throw rcn::Error(RCN_EINVALID, "The prediction is empty.");
  }
  const auto same = std::find_if(
    this->PredictionList.begin(), this->PredictionList.end(), [&name](const Prediction& one) { return one.Name == name; });
  const int number = static_cast<int>(same - this->PredictionList.begin());
  if (same == this->PredictionList.end())
  {
    this->PredictionList.push_back({ name, levels, probability, false, nullptr });
  }
  else
  {
    *same = { name, levels, probability, false, nullptr };
  }
  emit this->changed(number == this->ShownPrediction ? Predictions | Overlay | Contours : Changes(Predictions));
  if (number == this->ShownPrediction)
  {
    this->measureVolume();
  }
  return number;
}

void qRcnScene::setPredictionVolumes(int number, std::shared_ptr<const rcn::VolumeScores> scores)
{
  Prediction& prediction = this->PredictionList[static_cast<size_t>(number)];
  prediction.IsModel = true;
  prediction.Scores = std::move(scores);
  if (number == this->ShownPrediction)
  {
    this->measureVolume();
  }
}

void qRcnScene::removePredictions()
{
  if (this->PredictionList.empty())
  {
    return;
  }
  this->PredictionList.clear();
  this->ShownPrediction = -1;
  emit this->changed(Predictions | Overlay | Contours);
  this->measureVolume();
}

void qRcnScene::setShownPrediction(int number)
{
  const int chosen = number >= 0 && number < this->predictionCount() ? number : -1;
  if (chosen != this->ShownPrediction)
  {
    this->set(this->ShownPrediction, chosen, Overlay | Contours);
    this->measureVolume();
  }
}

void qRcnScene::setReadout(int readout, int number)
{
  if (readout == this->Readout && number == this->ReadoutNumber)
  {
    return;
  }
  this->Readout = readout;
  this->ReadoutNumber = number;
  emit this->changed(Overlay | Contours);
  this->measureVolume();
}

void qRcnScene::setPredictionOpacity(double opacity)
{
  this->set(this->PredictionOpacity, std::clamp(opacity, 0.0, 1.0), Overlay);
}

void qRcnScene::setThreshold(double threshold)
{
  const double inside = std::clamp(threshold, 0.0, 1.0);
  if (inside != this->Threshold)
  {
    this->set(this->Threshold, inside, Overlay | Contours);
    emit this->volumeChanged(this->volumeAboveThreshold(), this->extentUnit());
  }
}

void qRcnScene::setThresholdContourVisible(bool visible)
{
  this->set(this->ThresholdContourVisible, visible, Overlay | Contours);
}

void qRcnScene::setLevelContoursVisible(bool visible)
{
  this->set(this->LevelContoursVisible, visible, Contours);
}

void qRcnScene::setHighlight(double lower, double upper)
{
  // Also for NaN.
  const bool none = !(upper >= lower) || upper < 0;
  const double low = none ? -1 : lower, high = none ? -1 : upper;
  if (low != this->HighlightLower || high != this->HighlightUpper)
  {
    this->HighlightLower = low;
    this->HighlightUpper = high;
    emit this->changed(Overlay);
  }
}

std::array<uint8_t, 1024> qRcnScene::probabilityColors(double opacity) const
{
  std::array<uint8_t, 1024> colors{};
  for (size_t i = 0; i < 256; ++i)
  {
    rcn_color_palette(&colors[4 * i], this->LevelPalette, static_cast<double>(i) / 255);
    colors[4 * i + 3] = static_cast<uint8_t>(std::lround(255 * opacity));
  }
  return colors;
}

// ---- the volume above the threshold: counted once per readout, off the GUI thread

double qRcnScene::volumeAboveThreshold() const
{
  if (this->Counts.empty())
  {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const auto step = static_cast<size_t>(std::lround(this->Threshold * RCN_SLICE_STEPS));
  return static_cast<double>(this->Counts[step]) * this->extent().PerVoxel;
}

// Counted at a thousand thresholds at once, so that the slider of the threshold needs no further pass.
void qRcnScene::measureVolume()
{
  this->Counts.clear();
  emit this->volumeChanged(this->volumeAboveThreshold(), this->extentUnit());
  // The readout that is shown does not change what raters would measure.
  const Prediction* now = this->ShownPrediction >= 0 ? &this->prediction(this->ShownPrediction) : nullptr;
  const std::pair<const void*, const void*> key(
    now && now->IsModel ? now->volume().Data() : nullptr, now ? now->Scores.get() : nullptr);
  const bool known = this->Volumes.IsKnown() && key == this->Measured;
  if (!known)
  {
    this->Volumes = rcn::PredictedVolumes();
    this->Measured = key;
    emit this->volumesChanged();
  }
  if (!now)
  {
    this->Counting->cancel();
    return;
  }
  // The volume is a copy that shares the buffer: it stays whatever happens to the scene.
  const rcn::Volume volume = now->volume();
  const std::shared_ptr<const rcn::VolumeScores> scores = now->Scores;
  // Of one probability K is that of the case, where it has raters.
  const int raters = known || !now->IsModel ? 0 : now->hasLevels() ? volume.View().components - 1 : this->raterCount();
  const int readout = this->Readout, number = this->ReadoutNumber;
  this->Counting->startInstead(tr("Measuring volumes"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    const auto context = makeContext(0);
    rcn_context_set_progress(
      context.get(),
      [](double, const char*, void* payload) -> int { return static_cast<qRcnJob::Monitor*>(payload)->isCanceled(); },
      &monitor);
    std::vector<int64_t> counts(RCN_SLICE_STEPS + 1);
    rcn::Check(rcn_slice_counts(counts.data(), context.get(), &volume.View(), readout, number), context.get());
    const rcn::PredictedVolumes volumes = MeasureVolumes(context.get(), volume, raters, scores.get());
    return [this, counts, volumes]() {
      this->Counts = counts;
      if (volumes.IsKnown())
      {
        this->Volumes = volumes;
        emit this->volumesChanged();
      }
      emit this->volumeChanged(this->volumeAboveThreshold(), this->extentUnit());
    };
  });
}
