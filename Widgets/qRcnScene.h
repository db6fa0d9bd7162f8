// SPDX-License-Identifier: Apache-2.0
/// What is shown: images, raters, predictions, colors, the cursor. All slice views share one scene and follow it.
///
/// The scene shares ownership of everything it shows (a volume holds its buffer, votes come as shared_ptr), so that a job
/// may replace the case at any time. It must outlive its views. A setter that changes nothing sends no signal.
#ifndef qRcnScene_h
#define qRcnScene_h

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <QColor>
#include <QObject>
#include <QString>
#include <QStringList>
#include <QVector>

#include "rcn/rcn_slice.h"
#include "rcnImageIO.h"
#include "rcnReport.h"
#include "rcnVolumes.h"
#include "rcnWorkspace.h"

class qRcnJob;

class qRcnScene : public QObject
{
  Q_OBJECT
public:
  using Voxel = std::array<int64_t, 3>;

  /// What a change is about.
  enum Change
  {
    Case = 1,         ///< another image, other votes, other raters
    Cursor = 2,       ///< another voxel
    Image = 4,        ///< window, or which image is shown
    Overlay = 8,      ///< heat map, prediction, highlight
    Contours = 16,    ///< outlines of raters and of predictions
    Predictions = 32, ///< one was added or removed
    Place = 64,       ///< zoom, and what is in the middle of the views
    Votes = 128       ///< other answers of the same raters in the same image
  };
  Q_DECLARE_FLAGS(Changes, Change)

  /// A model's answer (or a fused map): levels (float32, K + 1 components), a probability (float32), or both. With
  /// levels the readout can be chosen; a lone probability is shown as it is.
  struct Prediction
  {
    QString Name;
    rcn::Volume Levels;
    rcn::Volume Probability;
    bool IsModel = false;                            ///< a model's: its volumes are what raters would measure
    std::shared_ptr<const rcn::VolumeScores> Scores; ///< for intervals of them; null: not known
    bool hasLevels() const { return this->Levels.Data() != nullptr; }
    const rcn::Volume& volume() const { return this->hasLevels() ? this->Levels : this->Probability; }
  };

  /// A line around something beside what the scene is about, such as another structure in the same image. It is of the raters
  /// (Table) or of a map, and hidden with the outlines of the raters or the contour of the prediction.
  struct Outline
  {
    QColor Color;
    std::vector<float> Table; ///< for each pattern of the votes, 1: inside, 0: outside; empty: a map
    rcn::Volume Map;          ///< float32; inside is where its readout reaches the threshold
    int Readout = RCN_READOUT_EXPECTED;
    int ReadoutNumber = 0;
  };

  explicit qRcnScene(QObject* parent = nullptr);
  ~qRcnScene() override;

  // ---- the case

  /// Shows another case; predictions, highlight, zoom and window go, settings (heat map, readout, ...) stay. Images may be
  /// empty, votes null; what is given must have the geometry's size. Throws rcn::Error (RCN_EGEOMETRY) otherwise, and
  /// the scene stays as it was.
  void setCase(const std::vector<rcn::Volume>& images, std::shared_ptr<const rcn_votes> votes, const rcn_geometry& geometry,
    const QStringList& raters);
  /// Other answers of the same raters in the same image. Everything else stays but outlines (setOutlines()), which go. Throws
  /// rcn::Error where size or raters are others, and the scene stays as it was.
  void setVotes(std::shared_ptr<const rcn_votes> votes);
  /// Nothing is shown.
  void clear();
  bool isEmpty() const { return this->Geometry.size[0] == 0; }

  const rcn_geometry& geometry() const { return this->Geometry; }
  const std::vector<rcn::Volume>& images() const { return this->Images; }
  const rcn_votes* votes() const { return this->Answers.get(); }
  /// For work that goes on when the scene shows something else.
  const std::shared_ptr<const rcn_votes>& sharedVotes() const { return this->Answers; }
  /// The one view (rcn_view) that is of use for a volume of one slice; -1: all are.
  int onlyView() const;
  int raterCount() const { return this->Answers ? rcn_votes_raters(this->Answers.get()) : 0; }
  const QStringList& raterNames() const { return this->RaterNames; }
  /// Whether the rater answered this case.
  bool isRaterPresent(int rater) const;

  /// The image that is shown, the first of the case; null when there is none. *component = -1 for a color picture.
  const rcn_image* shownImage(int* component) const;

  /// Black and white. Level is their middle, window their distance.
  double black() const { return this->Black; }
  double white() const { return this->White; }
  void setWindow(double black, double white);
  /// A window that suits the image.
  void resetWindow();
  /// The range that resetWindow() takes: what a drag across a view runs through.
  double lowest() const { return this->Lowest; }
  double highest() const { return this->Highest; }
  /// Whether the shown image is one of gray values, so that a window means something.
  bool hasGrayImage() const;
  /// Windows of CT in Hounsfield units, those of 3D Slicer.
  struct WindowPreset
  {
    const char *Name, *Label;
    double Window, Level;
  };
  static const std::vector<WindowPreset>& windowPresets();
  void setWindowPreset(const WindowPreset& preset);

  // ---- zoom and place: the same in all views

  /// 1: each view shows its whole slice.
  double zoom() const { return this->Zoom; }
  /// The voxel index in the middle of the views.
  const std::array<double, 3>& center() const { return this->Center; }
  /// The zoom is brought into a range that can be used.
  void setPlace(double zoom, const std::array<double, 3>& center);
  /// All of the image.
  void resetPlace();

  // ---- the cursor

  const Voxel& cursor() const { return this->CursorVoxel; }
  /// Brought into the volume where it lies outside.
  void setCursor(const Voxel& voxel);
  /// Its position in mm, to the right, front and head (RAS); for a picture along x and y.
  std::array<double, 3> cursorRas() const { return this->rasOf(this->CursorVoxel); }
  std::array<double, 3> rasOf(const Voxel& voxel) const;
  /// The voxel nearest to a position in mm.
  void setCursorRas(const std::array<double, 3>& ras);
  /// Moves the cursor there, and every view brings it into sight, however far it is zoomed in or was moved away. With an axis
  /// the views move along this one only: a person who clicks into a slice must not lose it under the hand.
  void visit(const Voxel& voxel, int axis = -1);
  bool isCrosshairVisible() const { return this->CrosshairVisible; }
  /// Whether views explain the colors that lie over the image.
  bool isColorBarVisible() const { return this->ColorBarVisible; }

  // ---- raters and their consensus

  QColor raterColor(int rater) const;
  void setRaterColor(int rater, const QColor& color);
  bool isRaterVisible(int rater) const;
  /// Bit r for each rater whose outline is to be drawn.
  uint64_t visibleRaters() const;
  bool areContoursVisible() const { return this->ContoursVisible; }
  bool isHeatMapVisible() const { return this->HeatMapVisible; }
  double heatMapOpacity() const { return this->HeatMapOpacity; }
  /// The only level shown; -1: all.
  int isolatedLevel() const { return this->IsolatedLevel; }
  rcn_palette levelPalette() const { return this->LevelPalette; }
  /// What voxels measure here: mL, mm² or pixels.
  rcn::Extent extent() const { return rcn::Extent(this->Geometry); }
  QString extentUnit() const { return QString::fromStdString(this->extent().Unit); }
  QString extentName() const { return QString::fromStdString(this->extent().Name); }
  const std::vector<Outline>& outlines() const { return this->Outlines; }
  /// In the order in which they are drawn. Throws rcn::Error where one does not fit, and the scene stays as it was.
  void setOutlines(const std::vector<Outline>& outlines);
  /// Extent of each level 0 ... K, K being how many raters answered this case; empty without votes.
  QVector<double> levelVolumes() const;

  // ---- predictions

  /// Returns its number. A name that is there already is replaced. Throws rcn::Error where the geometry is another.
  int addPrediction(const QString& name, const rcn::Volume& levels, const rcn::Volume& probability = rcn::Volume());
  /// The prediction is a model's; `scores` as in rcn::PredictVolumes().
  void setPredictionVolumes(int number, std::shared_ptr<const rcn::VolumeScores> scores);
  void removePredictions();
  int predictionCount() const { return static_cast<int>(this->PredictionList.size()); }
  const Prediction& prediction(int number) const { return this->PredictionList.at(static_cast<size_t>(number)); }
  /// The number of the prediction that lies over the image; -1: none.
  int shownPrediction() const { return this->ShownPrediction; }

  /// Majority, Expected, AtLeast and MoreThanHalf are rcn_readout's numbers; RCN_SLICE_LEVEL is exactly so many raters.
  int readout() const { return this->Readout; }
  int readoutNumber() const { return this->ReadoutNumber; }
  double predictionOpacity() const { return this->PredictionOpacity; }
  double threshold() const { return this->Threshold; }
  bool isThresholdContourVisible() const { return this->ThresholdContourVisible; }
  bool areLevelContoursVisible() const { return this->LevelContoursVisible; }
  /// Extent at and above the threshold in the shown prediction; NaN while it is being measured, and without one.
  double volumeAboveThreshold() const;
  /// What raters would measure on the shown prediction; not known while it is being measured, and of fused maps.
  const rcn::PredictedVolumes& volumes() const { return this->Volumes; }

  // ---- highlight: voxels whose probability lies in a range

  bool hasHighlight() const { return this->HighlightUpper >= 0; }
  double highlightLower() const { return this->HighlightLower; }
  double highlightUpper() const { return this->HighlightUpper; }

  // ---- for the views

  rcn_context* context() const { return this->Context.get(); }
  /// One for a worker's thread; 0 threads: all cores.
  static std::unique_ptr<rcn_context, rcn::ContextDeleter> makeContext(int threads);
  /// Four bytes per pattern of the votes: the consensus in colors, with opacity and isolation.
  const std::vector<uint8_t>& patternColors() const;
  /// The same for the mask of one rater, in the rater's color.
  std::vector<uint8_t> raterColors(int rater) const;
  /// The smallest probability that gets a color: what is practically nobody's is left clear, as level 0 is in the heat
  /// map; without the threshold's contour, all below the threshold.
  double lowestShown() const { return this->ThresholdContourVisible ? 0.05 : std::max(this->Threshold, 0.001); }
  /// A color with an opacity for each of 256 steps of probability.
  std::array<uint8_t, 1024> probabilityColors(double opacity) const;

public slots:
  void setCrosshairVisible(bool visible);
  void setColorBarVisible(bool visible);
  void setRaterVisible(int rater, bool visible);
  void setContoursVisible(bool visible);
  void setHeatMapVisible(bool visible);
  void setHeatMapOpacity(double opacity);
  void setIsolatedLevel(int level);
  void setLevelPalette(rcn_palette palette);
  void setShownPrediction(int number);
  void setReadout(int readout, int number);
  void setPredictionOpacity(double opacity);
  void setThreshold(double threshold);
  void setThresholdContourVisible(bool visible);
  void setLevelContoursVisible(bool visible);
  /// (-1, -1): none.
  void setHighlight(double lower, double upper);

signals:
  void changed(qRcnScene::Changes what);
  /// The cursor is to be seen.
  void visited(int axis);
  /// The volume above the threshold is another, or has been measured.
  void volumeChanged(double extent, const QString& unit);
  /// volumes() are others, or have been measured.
  void volumesChanged();

private:
  template <class T> void set(T& member, const T& value, Changes what);
  /// A color for each pattern of the votes; an invalid one leaves its voxels clear.
  std::vector<uint8_t> colorPatterns(const std::function<QColor(const rcn_pattern&)>& color) const;
  void measureVolume();

  std::unique_ptr<rcn_context, rcn::ContextDeleter> Context;
  rcn_geometry Geometry{};
  std::vector<rcn::Volume> Images;
  std::shared_ptr<const rcn_votes> Answers;
  std::vector<Outline> Outlines;
  QStringList RaterNames;
  std::vector<QColor> RaterColors;
  uint64_t HiddenRaters = 0;
  mutable rcn_image ShownImage{};
  double Black = 0, White = 1;
  double Lowest = 0, Highest = 1;
  double Zoom = 1;
  std::array<double, 3> Center{};
  Voxel CursorVoxel{};
  bool CrosshairVisible = true;
  bool ColorBarVisible = true;
  bool ContoursVisible = true;
  bool HeatMapVisible = true;
  double HeatMapOpacity = 0.5;
  int IsolatedLevel = -1;
  rcn_palette LevelPalette = RCN_PALETTE_GREEN;
  std::vector<Prediction> PredictionList;
  int ShownPrediction = -1;
  int Readout = RCN_READOUT_EXPECTED;
  int ReadoutNumber = 0;
  double PredictionOpacity = 0.5;
  double Threshold = 0.5;
  bool ThresholdContourVisible = true;
  bool LevelContoursVisible = false;
  double HighlightLower = -1, HighlightUpper = -1;

  mutable std::vector<uint8_t> PatternColors; // empty: to be made
  /// Voxels above each step of the shown prediction's readout; empty while they are counted.
  std::vector<int64_t> Counts;
  rcn::PredictedVolumes Volumes;
  std::pair<const void*, const void*> Measured{ nullptr, nullptr }; ///< map and scores that these are of
  qRcnJob* Counting;
};

Q_DECLARE_OPERATORS_FOR_FLAGS(qRcnScene::Changes)
Q_DECLARE_METATYPE(qRcnScene::Changes)

#endif
