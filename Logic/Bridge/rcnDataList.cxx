// SPDX-License-Identifier: Apache-2.0
#include "rcnDataList.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "rcnAddress.h"
#include "rcnJson.h"
#include "rcnReport.h"

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

/// Parses one list; remembers what the error sentences need.
class Parser
{
public:
  Parser(const std::string& folder, const std::string& name) : Folder_(folder), Name_(name) {}

  /// Raters and structures first: the cases are read with them.
  DataList Parse(const std::string& text)
  {
    const JsonHandle root = ParseJson(text, this->Name_ + " cannot be used");
    if (!json_is_object(root.get()))
    {
      this->Fail("", "must be an object with \"raters\", \"training\", ...");
    }
    this->List_.Path = this->Name_;
    this->ReadRaterNames(json_object_get(root.get(), "raters"));
    std::vector<int64_t> values = this->ReadValues(json_object_get(root.get(), "value"), "");
    this->ReadStructures(root.get());
    if (this->List_.Structures.size() == 1)
    {
      values = this->List_.Structures.front().Values; // one structure: what is marked has a name, nothing else is new
    }
    for (const char* split : { "training", "validation", "test" })
    {
      json_t* cases = json_object_get(root.get(), split);
      if (!cases)
      {
        continue;
      }
      if (!json_is_array(cases))
      {
        this->Fail("", std::string("\"") + split + "\" must be an array of cases.");
      }
      for (size_t i = 0; i < json_array_size(cases); ++i)
      {
        this->ReadCase(json_array_get(cases, i), split, i, values);
      }
    }
    if (this->List_.Cases.empty())
    {
      this->Fail("", "has no case under \"training\", \"validation\" or \"test\".");
    }
    if (std::all_of(this->List_.Cases.begin(), this->List_.Cases.end(), [](const Case& one) { return one.Raters.empty(); }))
    {
      this->Fail(this->List_.Cases.front().Id, "has no rater, and no other case has one.");
    }
    return this->List_;
  }

private:
  [[noreturn]] void Fail(const std::string& where, const std::string& what) const
  {
    throw Error(RCN_EFORMAT, this->Name_ + (where.empty() ? " " : ", case " + where + ": ") + what);
  }

  /// Relative to the list's own folder, so that a data set can be moved as a whole.
  std::string Resolve(const char* path) const
  {
    RefuseAddress(path, this->Name_ + ": ");
    const fs::path file(path);
    return file.is_absolute() ? file.string() : (fs::path(this->Folder_) / file).string();
  }

  void ReadRaterNames(json_t* raters)
  {
    if (!raters)
    {
      return; // named by the labels
    }
    if (!json_is_array(raters))
    {
      this->Fail("", "\"raters\" must be an array of names.");
    }
    for (size_t i = 0; i < json_array_size(raters); ++i)
    {
      const char* name = json_string_value(json_array_get(raters, i));
      if (!name || !*name)
      {
        this->Fail("", "\"raters\" must be an array of names.");
      }
      if (this->RaterIndex(name) >= 0)
      {
        this->Fail("", "names the rater " + std::string(name) + " twice.");
      }
      this->List_.Raters.push_back(name);
    }
    this->NamesGiven_ = !this->List_.Raters.empty();
  }

  int RaterIndex(const std::string& name) const
  {
    const auto found = std::find(this->List_.Raters.begin(), this->List_.Raters.end(), name);
    return found == this->List_.Raters.end() ? -1 : static_cast<int>(found - this->List_.Raters.begin());
  }

  /// Whole numbers that a double holds exactly, because voxels are compared as doubles.
  static bool IsLabelValue(const json_t* value)
  {
    return json_is_integer(value) && json_integer_value(value) <= LargestLabel && json_integer_value(value) >= -LargestLabel;
  }

  /// `what` must be such a value, or an array of them.
  std::vector<int64_t> ReadValues(json_t* value, const std::string& where, const std::string& what = "\"value\"") const
  {
    std::vector<int64_t> values;
    const size_t count = json_is_array(value) ? json_array_size(value) : value && !json_is_null(value) ? 1 : 0;
    for (size_t i = 0; i < count; ++i)
    {
      json_t* one = json_is_array(value) ? json_array_get(value, i) : value;
      if (!IsLabelValue(one))
      {
        this->Fail(where, what + " must be a whole number or an array of them.");
      }
      values.push_back(json_integer_value(one));
    }
    return values;
  }

  // ---- structures ----

  void ReadStructures(json_t* root)
  {
    json_t* const structures = json_object_get(root, "structures");
    std::vector<Structure>& named = this->List_.Structures;
    if (structures && !json_is_null(structures))
    {
      if (!json_is_object(structures))
      {
        this->Fail("", "\"structures\" must be an object of names and label values, such as {\"kidney\": 1, \"liver\": 2}.");
      }
      const char* name;
      json_t* value;
      json_object_foreach(structures, name, value)
      {
        named.push_back({ name, this->ReadValues(value, "", "the structure " + std::string(name)) });
      }
      // Both say what is marked, and may say different things.
      if (json_object_get(root, "value") && !named.empty())
      {
        this->Fail("", "has both \"structures\" and \"value\"; leave out one of them.");
      }
    }
    else if (!json_object_get(root, "value") && !HasValue(json_object_get(root, "training")) &&
      !HasValue(json_object_get(root, "validation")) && !HasValue(json_object_get(root, "test")))
    {
      this->ReadLabels(json_object_get(root, "labels"));
    }
    const std::string sentence = CheckStructures(named);
    if (!sentence.empty())
    {
      throw Error(RCN_EFORMAT, this->Name_ + ": " + sentence);
    }
  }

  /// Whether a "value" says anywhere in these cases what is marked.
  static bool HasValue(json_t* part)
  {
    if (json_is_object(part))
    {
      const char* key;
      json_t* inner;
      json_object_foreach(part, key, inner)
      {
        if (std::string(key) == "value" || HasValue(inner))
        {
          return true;
        }
      }
    }
    for (size_t i = 0; i < json_array_size(part); ++i)
    {
      if (HasValue(json_array_get(part, i)))
      {
        return true;
      }
    }
    return false;
  }

  /// The dictionary of MONAI (value: name) or nnU-Net (name: value or values). With one foreground label it describes what
  /// any mark means, and nothing is read from it; nor is a dictionary of another kind, which was made for somebody else.
  void ReadLabels(json_t* labels)
  {
    std::vector<Structure> found;
    std::optional<int64_t> ignored;
    const char* key;
    json_t* entry;
    json_object_foreach(labels, key, entry)
    {
      Structure one;
      if (!ReadLabelEntry(one, key, entry))
      {
        return;
      }
      if (one.Name == "ignore" && one.Values.size() == 1) // nnU-Net: no answer there
      {
        ignored = one.Values.front();
      }
      else if (one.Values != std::vector<int64_t>{ 0 }) // the background, whatever it is called
      {
        found.push_back(one);
      }
    }
    // One foreground label, or none: the list is about one structure.
    if (found.size() > 1)
    {
      this->RefuseRegions(found);
      this->List_.Structures = found;
      this->Unanswered_ = ignored;
    }
  }

  static bool ReadLabelEntry(Structure& one, const char* key, json_t* entry)
  {
    if (json_is_string(entry))
    {
      one.Name = json_string_value(entry);
      return ParseLabelValues(one.Values, key) && one.Values.size() == 1;
    }
    one.Name = key;
    for (size_t i = 0; i < (json_is_array(entry) ? json_array_size(entry) : 1); ++i)
    {
      const json_t* value = json_is_array(entry) ? json_array_get(entry, i) : entry;
      if (!IsLabelValue(value))
      {
        return false;
      }
      one.Values.push_back(json_integer_value(value));
    }
    return !one.Values.empty();
  }

  /// nnU-Net's regions (the whole tumor, its core, ...) lie in one another; a voxel of several structures has one of them.
  void RefuseRegions(const std::vector<Structure>& labels) const
  {
    std::map<int64_t, std::string> byValue;
    for (const Structure& one : labels)
    {
      for (const int64_t value : one.Values)
      {
        const auto other = byValue.emplace(value, one.Name);
        if (!other.second && other.first->second != one.Name)
        {
          this->Fail("",
            "has overlapping regions in \"labels\" (" + other.first->second + " and " + one.Name + " share the label value " +
              std::to_string(value) + "); name structures that do not overlap under \"structures\", or give one a \"value\".");
        }
      }
    }
  }

  /// A file for each structure: {"kidney": "a_kidney.nii.gz", "liver": {"file": "a_liver.nii.gz", "value": 3}}. Files are
  /// required for all of them, because a rater who was not asked about one has not left it out.
  void ReadStructureFiles(RaterFile& rater, json_t* label, const std::string& where) const
  {
    const char* name;
    json_t* file;
    json_object_foreach(label, name, file)
    {
      const std::vector<std::string> names = NamesOf(this->List_.Structures);
      if (std::find(names.begin(), names.end(), name) == names.end())
      {
        this->Fail(where, "has a file of " + rater.Name + " for " + name + ", which is not among the structures.");
      }
    }
    for (const Structure& structure : this->List_.Structures)
    {
      RaterFile single;
      if (!this->ReadFile(single, json_object_get(label, structure.Name.c_str()), where, {}))
      {
        this->Fail(
          where, "has no file of " + rater.Name + " for the structure " + structure.Name + "; give one, if need be empty.");
      }
      rater.Structures.push_back({ single.Path, single.Values, -1 });
    }
    rater.Path = rater.Structures.front().Path;
  }

  // ---- files ----

  /// A file name, or {"file": name, "value": ...}; false for null.
  bool ReadFile(RaterFile& file, json_t* label, const std::string& where, const std::vector<int64_t>& values) const
  {
    if (!label || json_is_null(label))
    {
      return false;
    }
    file.Values = values;
    json_t* name = label;
    if (json_is_object(label))
    {
      name = json_object_get(label, "file");
      if (json_t* own = json_object_get(label, "value"))
      {
        file.Values = this->ReadValues(own, where);
      }
    }
    const char* path = json_string_value(name);
    if (!path || !*path)
    {
      this->Fail(where, "a label must be a file name or {\"file\": name, \"value\": number}.");
    }
    file.Path = this->Resolve(path);
    return true;
  }

  /// All that a rater says about a case: a file, or a file for each structure; false for null.
  bool ReadAnswer(RaterFile& rater, json_t* label, const std::string& where, const std::vector<int64_t>& values) const
  {
    // Only where structures are named, a dictionary of files is one of structures; otherwise it is one of raters.
    const bool several = this->List_.HasStructures();
    if (several && json_is_object(label) && !json_object_get(label, "file"))
    {
      this->ReadStructureFiles(rater, label, where);
      return true;
    }
    const bool answered = this->ReadFile(rater, label, where, values);
    if (several && !rater.Values.empty())
    {
      this->Fail(where, "has a \"value\" for a label map of several structures; their values are under \"structures\".");
    }
    return answered;
  }

  void ReadCase(json_t* entry, const char* split, size_t index, const std::vector<int64_t>& listValues)
  {
    Case one;
    one.Split = split;
    one.Structures = this->List_.Structures;
    one.Unanswered = this->Unanswered_;
    const std::string number = std::to_string(index + 1) + " of \"" + split + "\"";
    if (!json_is_object(entry))
    {
      this->Fail(number, "must be an object with \"image\" and \"label\".");
    }
    if (const char* patient = json_string_value(json_object_get(entry, "patient")))
    {
      one.Patient = patient;
    }
    json_t* image = json_object_get(entry, "image");
    const size_t images = json_is_array(image) ? json_array_size(image) : image && !json_is_null(image) ? 1 : 0;
    for (size_t i = 0; i < images; ++i)
    {
      const char* path = json_string_value(json_is_array(image) ? json_array_get(image, i) : image);
      if (!path || !*path)
      {
        this->Fail(number, "\"image\" must be a file name or an array of them.");
      }
      one.Images.push_back(this->Resolve(path));
    }
    one.Id = this->ReadId(json_object_get(entry, "id"), one, number);
    if (one.Id.find('/') != std::string::npos || one.Id == "." || one.Id == "..")
    {
      this->Fail(one.Id, "an \"id\" must be usable as a file name.");
    }
    if (!this->Ids_.insert(one.Id).second)
    {
      this->Fail(one.Id, "is in the list twice.");
    }

    std::vector<int64_t> values = listValues;
    if (json_t* own = json_object_get(entry, "value"))
    {
      values = this->ReadValues(own, one.Id);
    }
    this->ReadLabel(one, json_object_get(entry, "label"), values);
    this->List_.Cases.push_back(one);
  }

  /// Lists without ids are common: the image's name without its extension serves.
  std::string ReadId(const json_t* id, const Case& one, const std::string& number) const
  {
    if (json_is_integer(id))
    {
      return std::to_string(json_integer_value(id));
    }
    if (id && !json_is_null(id) && !json_is_string(id))
    {
      this->Fail(number, "\"id\" must be text.");
    }
    if (json_string_length(id) > 0)
    {
      return json_string_value(id);
    }
    if (one.Images.empty())
    {
      this->Fail(number, "has neither \"id\" nor \"image\".");
    }
    // Up to the first point: "a.nii.gz" is "a".
    const std::string name = fs::path(one.Images.front()).filename().string();
    const std::string stem = name.substr(0, name.find('.'));
    if (stem.empty())
    {
      this->Fail(number, "has no \"id\", and the name of its image gives none.");
    }
    return stem;
  }

  void ReadLabel(Case& one, json_t* label, const std::vector<int64_t>& values)
  {
    if (!label || json_is_null(label))
    {
      this->Fail(one.Id, "has no \"label\".");
    }
    if (json_is_object(label) && !json_object_get(label, "file"))
    {
      const char* name;
      json_t* file;
      json_object_foreach(label, name, file)
      {
        RaterFile rater;
        rater.Name = name;
        if (rater.Name.empty())
        {
          this->Fail(one.Id, "has a label of a rater without a name.");
        }
        if (this->RaterIndex(name) < 0)
        {
          if (this->NamesGiven_)
          {
            this->Fail(one.Id, "names the rater " + rater.Name + ", who is not among \"raters\".");
          }
          this->CheckMixture(one.Id, this->NumberedCase_);
          this->List_.Raters.push_back(rater.Name);
          this->NamedCase_ = one.Id;
        }
        if (this->ReadAnswer(rater, file, one.Id, values))
        {
          one.Raters.push_back(rater);
        }
      }
    }
    else if (json_is_array(label))
    {
      for (size_t i = 0; i < json_array_size(label); ++i)
      {
        RaterFile rater;
        rater.Name = this->NameAt(i, one.Id);
        if (this->ReadAnswer(rater, json_array_get(label, i), one.Id, values))
        {
          one.Raters.push_back(rater);
        }
      }
    }
    else
    {
      RaterFile file;
      this->ReadAnswer(file, label, one.Id, values);
      const size_t count = this->NamesGiven_ ? this->List_.Raters.size() : 1;
      for (size_t i = 0; i < count; ++i)
      {
        file.Name = this->NameAt(i, one.Id);
        // One file for several named raters has a channel for each of them.
        file.Channel = count > 1 ? static_cast<int>(i) : -1;
        one.Raters.push_back(file);
      }
    }
    if (this->List_.Raters.size() > RCN_MAX_RATERS)
    {
      this->Fail(one.Id, "more than " + std::to_string(RCN_MAX_RATERS) + " raters.");
    }
  }

  /// Who is the second of ["a", "b"] when another case says {"A": ..., "C": ...}?
  void CheckMixture(const std::string& where, const std::string& other) const
  {
    if (!other.empty())
    {
      this->Fail(
        where, "gives labels another way (by name or in order) than case " + other + "; list the names under \"raters\".");
    }
  }

  std::string NameAt(size_t index, const std::string& where)
  {
    if (index < this->List_.Raters.size())
    {
      return this->List_.Raters[index];
    }
    if (this->NamesGiven_)
    {
      this->Fail(where, "has more labels than there are \"raters\".");
    }
    this->CheckMixture(where, this->NamedCase_);
    this->NumberedCase_ = where;
    this->List_.Raters.push_back("r" + std::to_string(index + 1));
    return this->List_.Raters.back();
  }

  std::string Folder_, Name_;
  DataList List_;
  bool NamesGiven_ = false;
  std::optional<int64_t> Unanswered_;    // nnU-Net's "ignore"
  std::string NamedCase_, NumberedCase_; // where raters' names came from, when "raters" gives none
  std::set<std::string> Ids_;
};

} // namespace

DataList ParseDataList(const std::string& text, const std::string& folder, const std::string& name)
{
  return Parser(folder, name).Parse(text);
}

std::string LeaveOutUnrated(DataList& list, const std::string& split)
{
  std::vector<std::string> ids;
  std::vector<Case> rated;
  bool any = false;
  for (Case& one : list.Cases)
  {
    const bool wanted = split.empty() || one.Split == split;
    any = any || (wanted && !one.Raters.empty());
    if (!one.Raters.empty())
    {
      rated.push_back(std::move(one));
    }
    else if (wanted)
    {
      ids.push_back(one.Id);
    }
  }
  list.Cases = std::move(rated);
  if (!ids.empty() && !any)
  {
    throw Error(
      RCN_EDATA, list.Path + ": no rater has answered any case" + (split.empty() ? "." : " of the split " + split + "."));
  }
  const std::string more = ids.size() > 10 ? ", ..." : "";
  const std::string count = Counted(static_cast<int64_t>(ids.size()), "case");
  ids.resize(std::min<size_t>(ids.size(), 10));
  return ids.empty() ? "" : "No rater has answered " + count + " (" + JoinNames(ids) + more + "), left out.";
}

DataList ReadDataList(const std::string& path)
{
  const std::string folder = fs::path(path).parent_path().string();
  return ParseDataList(ReadText(path), folder.empty() ? "." : folder, path);
}

RaterFile ParseRater(const std::string& argument)
{
  RaterFile rater;
  std::error_code ignored;
  const std::string::size_type equals = argument.find('=');
  rater.Path = argument;
  // A file of that whole name comes first: names of files may contain "=".
  if (equals != std::string::npos && !fs::exists(argument, ignored))
  {
    rater.Name = argument.substr(0, equals);
    rater.Path = argument.substr(equals + 1);
    if (rater.Name.empty())
    {
      throw Error(RCN_EINVALID, argument + ": give the rater a name before the '='.");
    }
  }
  if (!rater.Name.empty() && !JsonHandle(json_string(rater.Name.c_str())))
  {
    throw Error(RCN_EINVALID, argument + ": the rater's name is not UTF-8 text; give another one.");
  }
  if (rater.Path.empty() || rater.Path[0] == ':')
  {
    throw Error(RCN_EINVALID, argument + ": give a file after the '='.");
  }
  RefuseAddress(rater.Path); // its colon does not begin a label value
  // The last colon, because paths of Windows have one, and only where no file has the whole name.
  const std::string::size_type colon = rater.Path.rfind(':');
  if (colon == std::string::npos || fs::exists(rater.Path, ignored))
  {
    return rater;
  }
  const std::string values = rater.Path.substr(colon + 1);
  rater.Path.resize(colon);
  if (!ParseLabelValues(rater.Values, values))
  {
    throw Error(RCN_EINVALID,
      argument + ": '" + values + "' after the colon is not a label value; give whole numbers such as :3 or :1,3.");
  }
  return rater;
}

std::vector<std::string> FilesOf(const RaterFile& rater)
{
  std::vector<std::string> files = { rater.Path };
  for (const StructureFile& one : rater.Structures)
  {
    if (!one.Path.empty() && std::find(files.begin(), files.end(), one.Path) == files.end())
    {
      files.push_back(one.Path);
    }
  }
  return files;
}

Case OneStructure(const Case& one, int structure)
{
  if (!one.HasStructures())
  {
    return one;
  }
  const auto index = static_cast<size_t>(structure) - 1;
  Case alone = one;
  alone.Structures = { one.Structures.at(index) };
  for (RaterFile& rater : alone.Raters)
  {
    // A label map: the mask is what has the structure's values.
    if (rater.Structures.empty())
    {
      rater.Values = alone.Structures.front().Values;
      continue;
    }
    const StructureFile file = rater.Structures.at(index);
    rater.Path = file.Path;
    rater.Values = file.Values;
    rater.Channel = file.Channel;
    rater.Structures.clear();
  }
  return alone;
}

DataList OneStructure(const DataList& list, int structure)
{
  if (!list.HasStructures())
  {
    return list;
  }
  DataList alone = list;
  alone.Structures = { list.Structures.at(static_cast<size_t>(structure) - 1) };
  std::transform(list.Cases.begin(), list.Cases.end(), alone.Cases.begin(),
    [structure](const Case& one) { return OneStructure(one, structure); });
  return alone;
}

// The same image or patient in training and in test makes a model look better than it is; links and other spellings of a path
// are followed.
void CheckSplits(const DataList& list, bool redivided)
{
  std::map<std::string, const Case*> byImage, byPatient;
  const auto refuse = [&](const std::string& what, const Case& other, const Case& one, const std::string& advice) {
    throw Error(RCN_EINVALID,
      (list.Path.empty() ? "" : list.Path + ": ") + what + " is in " + other.Split + " (case " + other.Id + ") and in " +
        one.Split + " (case " + one.Id + "); " + advice);
  };
  for (const Case& one : list.Cases)
  {
    // Images in memory have names that two of them may share; only files can be known to be the same.
    for (const std::string& image : one.Memory ? std::vector<std::string>() : one.Images)
    {
      std::error_code ignored;
      const std::filesystem::path path = std::filesystem::weakly_canonical(image, ignored);
      const Case*& other = byImage[path.empty() ? image : path.string()];
      if (other && other->Split != one.Split)
      {
        refuse("the image " + image, *other, one, "take it out of one of them.");
      }
      other = other ? other : &one;
    }
    if (one.Patient.empty())
    {
      continue;
    }
    const Case*& other = byPatient[one.Patient];
    // Where folds are made anew, training and validation may share a patient: the folds keep patients together themselves.
    const bool apart = other && other->Split != one.Split && (!redivided || other->Split == "test" || one.Split == "test");
    if (apart)
    {
      refuse("the patient " + one.Patient, *other, one, "keep all cases of a patient in one split.");
    }
    other = other ? other : &one;
  }
}

// Cases without a patient are one each.
std::vector<int> PatientNumbers(const std::vector<std::string>& patients)
{
  std::map<std::string, int> known;
  std::vector<int> numbers;
  for (size_t i = 0; i < patients.size(); ++i)
  {
    const std::string key = patients[i].empty() ? "case " + std::to_string(i) : "patient " + patients[i];
    numbers.push_back(known.emplace(key, static_cast<int>(known.size())).first->second);
  }
  return numbers;
}

} // namespace rcn
