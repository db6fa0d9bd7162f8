// SPDX-License-Identifier: Apache-2.0
/// The workspace: one case's raters, and what can be asked about them. Every shell (command line,
/// viewer, Slicer) maps a person's action to one call here.
#ifndef rcnWorkspace_h
#define rcnWorkspace_h

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rcn/rcn_agreement.h"
#include "rcn/rcn_fusion.h"
#include "rcnDataList.h"
#include "rcnImageIO.h"

namespace rcn
{

struct ContextDeleter
{
  void operator()(rcn_context* context) const { rcn_context_destroy(context); }
};
struct VotesDeleter
{
  void operator()(rcn_votes* votes) const { rcn_votes_destroy(votes); }
};

struct WorkspaceOptions
{
  int Threads = 0;                           ///< 0: all cores
  bool Resample = false;                     ///< resample masks of another geometry (nearest)
  double Tolerance = RCN_GEOMETRY_TOLERANCE; ///< in voxels, see rcn_geometry_compare()
  bool HasUnanswered = false;                ///< whether a label value means "did not answer here"
  int64_t Unanswered = 0;
  /// A label value that does not occur is a mistake, not an empty mask. Of several structures a rater may leave out some.
  bool AbsentLabelIsError = true;
};

/// Where a rater marked one structure, in memory.
struct StructureMask
{
  std::string Structure; ///< its name
  Volume Mask;
  std::vector<int64_t> Values; ///< label values that mean it; empty: any non-zero
  int Channel = 0;
};

/// One rater's mask that is in memory already.
struct RaterMask
{
  std::string Name;
  Volume Mask;                 ///< not used where there are masks of structures
  std::vector<int64_t> Values; ///< label values that mean "marked"; empty: any non-zero, or those of Case::Structures
  int Channel = 0;
  /// In place of a label map: what was marked of each structure, such as the segments of a segmentation. A structure that is
  /// not there was not marked.
  std::vector<StructureMask> Structures = {};
};

/// A case whose voxels are in memory already, such as a scene's.
struct CaseInMemory
{
  std::vector<Volume> Images;   ///< in the order of Case::Images
  std::vector<RaterMask> Masks; ///< found by the names in Case::Raters
};

/// The case of images and masks in memory. `imageName` stands in sentences.
Case CaseOf(const std::string& id, const std::vector<Volume>& images, const std::string& imageName,
  const std::vector<RaterMask>& masks, const std::vector<Structure>& structures = {});

/// The case's images, read where they are files: one or more channels each, all in the same geometry. Throws Error.
std::vector<Volume> ImagesOf(rcn_context* context, const Case& one, double tolerance = RCN_GEOMETRY_TOLERANCE);

/// What rcn_agreement_create() measured, with names and the disputed regions. May outlive the workspace.
struct AgreementReport
{
  std::shared_ptr<const rcn_agreement> Figures;
  std::vector<rcn_dispute> Regions;                   ///< largest first
  rcn_geometry Geometry = rcn_geometry_make(1, 1, 1); ///< of the case: what its voxels measure
  bool HasSurfaces = false;
};

/// How far raters agree on all labels of several structures together.
struct LabelAgreement
{
  rcn_label_agreement Figures{};
  std::vector<double> Kappa; ///< Cohen's, of each pair: [raters * raters]
};

struct FusionReport
{
  Volume Map; ///< float32, with its FusionNote(); labels of several structures are uint8
  Content MapContent = Content::Probability;
  rcn_fusion_result Figures{};
  std::vector<rcn_fusion_result> Each = {}; ///< of several structures with a component each: the figures of each
  rcn_label_staple Labels{};                ///< of several structures by STAPLE
  std::vector<double> Confusion = {};       ///< then: (raters, C + 1, C + 1), as rcn_label_staple_make() says
};

/// The note of a fused map: of whom it was made, so that nobody judges it by the same raters without being told.
std::string FusionNote(const std::string& method, const std::vector<std::string>& raters);

/// Whether a map with this note was made of one of these raters.
bool IsFusedFrom(const std::string& note, const std::vector<std::string>& raters);

/// The raters that a file stands for, each by name: itself, its segments, its components or its volumes. Reads the header.
/// Where there are structures, a segmentation is one rater's, and its segments are the structures of their names.
std::vector<RaterFile> RatersIn(const RaterFile& rater, const std::vector<Structure>& structures = {});

class Workspace
{
public:
  /// Throws Error (RCN_ENOMEM, or RCN_EINVALID for the options).
  explicit Workspace(const WorkspaceOptions& options = WorkspaceOptions());

  /// Return true to cancel. Called on the thread that runs the action.
  using ProgressFunction = std::function<bool(double fraction, const char* stage)>;
  void SetProgress(ProgressFunction progress);

  /// Gets the case's image (where given) and masks from files or memory, checks their geometry against the image (or the
  /// first mask) and packs the votes. `raters` is the full list of slots, in order; raters of it who
  /// are not in the case did not answer. Empty: the case's own raters.
  /// Throws Error that names the file or the rater; the workspace then keeps the case it had.
  void LoadCase(const Case& one, const std::vector<std::string>& raters = {});

  const WorkspaceOptions& Options() const { return this->Options_; }
  const std::vector<std::string>& RaterNames() const { return this->Raters_; }
  /// Borrowed until the next case is loaded or another structure selected; null without a case. Of several structures they
  /// are those of the one that is selected, or else labels, whose marks mean any structure.
  const rcn_votes* Votes() const { return this->Selected_ ? this->Selected_.get() : this->Votes_.get(); }
  /// Hands the votes of all structures over, for work on many cases at once; the workspace has no case then but must outlive
  /// them.
  std::unique_ptr<rcn_votes, VotesDeleter> TakeVotes()
  {
    this->Selected_.reset();
    return std::move(this->Votes_);
  }

  /// Of the case: several, or a single one that was given a name, or none.
  const std::vector<Structure>& Structures() const { return this->Structures_; }
  bool HasStructures() const { return this->Structures_.size() > 1; }
  /// From now on, Votes() and whatever is asked are about this structure (1, 2, ...), an ordinary case of one structure; 0: all
  /// of them again, which a case begins with. Costs a table. Throws Error (RCN_EINVALID) without a case or such a structure.
  void SelectStructure(int structure);
  int SelectedStructure() const { return this->Selected_ ? this->SelectedNumber_ : 0; }
  /// The votes of all structures, whichever is selected; null for a case of one structure.
  const rcn_votes* LabeledVotes() const { return this->HasStructures() ? this->Votes_.get() : nullptr; }
  /// The image's first file; Images() has all of them, one or more channels each, in the same geometry.
  const Volume& Image() const;
  const std::vector<Volume>& Images() const { return this->Images_; }
  /// Hands them over likewise.
  std::vector<Volume> TakeImages() { return std::exchange(this->Images_, {}); }
  bool HasImage() const { return !this->Images_.empty(); }
  /// Borrowed; for one thread at a time.
  rcn_context* Context() const { return this->Context_.get(); }

  /// Whether distances between outlines can be measured: not where a gantry was tilted. Throws without a case.
  bool HasRightAngles() const;

  /// Remarks about the case that a person should see, e.g. a rater who marked nothing.
  const std::vector<std::string>& Remarks() const { return this->Remarks_; }

  /// The one of Remarks() about masks with several labels that all count as marked, or about labels of no structure; it is
  /// here for one case of a workspace only, because those of a list are alike. Empty when there is none.
  const std::string& LabelRemark() const { return this->LabelRemark_; }

  /// These throw Error: RCN_EINVALID without a case, RCN_ECANCELLED when the progress function says so. Figures that are not
  /// defined are NaN.
  /// With surfaces, RCN_EGEOMETRY unless HasRightAngles().
  AgreementReport Agree(bool surfaces) const;
  FusionReport Fuse(const rcn_fusion_options& options) const;
  /// All labels of a case with several structures together; RCN_EINVALID for another.
  LabelAgreement AgreeLabels() const;
  /// One map of all structures: by RCN_MEDIAN the label that most raters gave, by RCN_STAPLE the most probable one (with the
  /// structures' label values), by other methods a component for each structure. Of one structure it is Fuse().
  FusionReport FuseStructures(const rcn_fusion_options& options);
  /// Entropy of the mean vote, in bits.
  Volume EntropyMap() const;

  /// One map for all structures: what `map` returns (one component, float32) while each of them is selected, as a component
  /// each, in their order. Of one structure it is the map itself. Afterwards all structures are selected.
  Volume MapOfEach(const std::function<Volume()>& map);

private:
  class Ballot;
  static void CountFiles(Ballot& ballot, const Case& one);
  static void CountFile(Ballot& ballot, const Case& one, const RaterFile& rater, const std::map<std::string, Volume>& volumes);
  static void CountMasks(Ballot& ballot, const Case& one);
  static Volume PlacedMask(Ballot& ballot, const std::string& rater, const Volume& mask, int channel);
  static void CountStructureMasks(Ballot& ballot, const Case& one, const RaterFile& rater, const RaterMask& mask);
  void RequireCase() const;
  std::vector<std::string> PresentRaters() const;
  void FuseLabels(FusionReport& report, const rcn_fusion_options& options) const;
  static int ForwardProgress(double fraction, const char* stage, void* payload);

  WorkspaceOptions Options_;
  std::shared_ptr<rcn_context> Context_; // must outlive the votes, and reports that outlive the workspace
  ProgressFunction Progress_;
  std::unique_ptr<rcn_votes, VotesDeleter> Votes_;
  std::unique_ptr<rcn_votes, VotesDeleter> Selected_; // shares the codes of Votes_, and must go first
  int SelectedNumber_ = 0;
  std::vector<Structure> Structures_;
  std::vector<std::string> Raters_;
  std::vector<Volume> Images_;
  std::vector<std::string> Remarks_;
  std::string LabelRemark_;
  bool LabelsRemarked_ = false;
};

/// What the map of a method holds.
Content ContentOf(const rcn_fusion_options& options);

} // namespace rcn

#endif
