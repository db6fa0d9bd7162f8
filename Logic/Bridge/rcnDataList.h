// SPDX-License-Identifier: Apache-2.0
/// Data lists: the MONAI/Decathlon JSON with several raters where one label stood.
///
///   {"raters": ["A", "B"],
///    "training": [{"id": "c01", "image": "c01.nii.gz", "label": {"A": "c01_A.nii.gz", "B": ...}}],
///    "validation": [...], "test": [...]}
///
/// Paths are relative to the list. A label is
///   - an object: rater's name -> file, or {"file": ..., "value": 3}, or null (did not answer);
///   - an array in the order of "raters": the same, null where a rater did not answer;
///   - one file: its components or volumes are the raters in order, or one rater's mask.
/// "value" (a label value or an array of them) may also stand in a case or at the top, for all files
/// below it.
///
/// Several structures: "structures": {"kidney": 1, "liver": [2, 3]} at the top, or the "labels" dictionary of MONAI
/// ({"0": "background", "1": "kidney", ...}) or nnU-Net ({"background": 0, "kidney": 1, ...}) where it names several. A
/// rater's file is then one label map, or there is a file for each structure: "label": {"A": {"kidney": ..., "liver": ...}}.
/// A "value" anywhere makes a list with "labels" one of one structure, as does a dictionary with one label.
#ifndef rcnDataList_h
#define rcnDataList_h

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rcn/rcn_votes.h"
#include "rcnError.h"
#include "rcnStructures.h"

namespace rcn
{

/// Where one rater's answer about one structure is, when it does not share a label map with the others.
struct StructureFile
{
  std::string Path;            ///< empty: nothing of it was marked
  std::vector<int64_t> Values; ///< label values that mean the structure; empty: any non-zero
  int Channel = -1;            ///< component or volume in the file; -1: the only one
};

/// Where one rater's mask is.
struct RaterFile
{
  std::string Name;
  std::string Path;                           ///< with several files of structures: the first of them
  std::vector<int64_t> Values;                ///< label values that mean "marked"; empty: any non-zero, or Case::Structures
  int Channel = -1;                           ///< component or volume in the file; -1: the only one
  std::vector<StructureFile> Structures = {}; ///< in the order of Case::Structures; empty: one label map, in Path
};

/// The files of a rater, each once.
std::vector<std::string> FilesOf(const RaterFile& rater);

struct CaseInMemory; // rcnWorkspace.h; this header needs no image library

/// One case: an image (may be empty) and who answered. Its voxels are in files or, where Memory is set, in memory; then paths
/// are names for sentences, and whoever leaves out the images or some raters of the case leaves them out of both.
struct Case
{
  std::string Id;
  std::string Split;               ///< "training", "validation" or "test"
  std::string Patient;             ///< for grouped splits; empty: none given
  std::vector<std::string> Images; ///< one file per channel
  std::vector<RaterFile> Raters;
  std::shared_ptr<const CaseInMemory> Memory; ///< null: files
  std::vector<Structure> Structures = {};     ///< as DataList::Structures
  std::optional<int64_t> Unanswered = {};     ///< label value of voxels that a rater did not assess

  /// Whether raters tell several structures apart. One alone is a name for what is marked.
  bool HasStructures() const { return this->Structures.size() > 1; }
};

/// A number for each patient, by case: cases of one patient have the same, and a case that names none has its own.
std::vector<int> PatientNumbers(const std::vector<std::string>& patients);

/// A case that could not be used, and why.
struct LeftOutCase
{
  std::string Id;
  std::string Sentence;
};

struct DataList
{
  std::string Path;                ///< the file, or what else the cases come from ("the scene"); stands in sentences
  std::vector<std::string> Raters; ///< all raters of the set, in order
  std::vector<Case> Cases;
  std::vector<Structure> Structures = {}; ///< what raters tell apart; none or one: any mark means the same

  bool HasStructures() const { return this->Structures.size() > 1; }
};

/// Reads and checks a list; throws Error with the file, the case and what is wrong. Image files are
/// not opened.
DataList ReadDataList(const std::string& path);

/// Throws Error, naming the cases, when an image or a patient is in two splits: then nothing that is measured on one of them
/// means anything. `redivided`: training and validation cases will be divided anew, by patient, so that only test cases must
/// be apart from them.
void CheckSplits(const DataList& list, bool redivided = false);

/// Takes out the cases that no rater has answered: nothing can be learned from them, or compared with them. Returns a sentence
/// that names those of the split (empty: of any), empty where there are none; throws Error (RCN_EDATA) where no other is in it.
std::string LeaveOutUnrated(DataList& list, const std::string& split = "");

/// The same from text; `folder` is where relative paths start, `name` stands in error sentences.
DataList ParseDataList(const std::string& text, const std::string& folder, const std::string& name);

/// The same case or list with one structure alone (1, 2, ...), as if it had always been the only one: each rater's label
/// values are those of the structure. Files are not opened.
Case OneStructure(const Case& one, int structure);
DataList OneStructure(const DataList& list, int structure);

/// "NAME=FILE", "NAME=FILE:3", "NAME=FILE:1,3" or "FILE" (all raters in that file: the segments of a
/// Slicer segmentation, the components of a voxel, or the volumes of a 4-D file). A colon that belongs
/// to an existing file's name is left alone.
RaterFile ParseRater(const std::string& argument);

} // namespace rcn

#endif
