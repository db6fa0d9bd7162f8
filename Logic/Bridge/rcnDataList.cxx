// SPDX-License-Identifier: Apache-2.0
#include "rcnDataList.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "rcnAddress.h"
#include "rcnJson.h"

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

  DataList Parse(const std::string& text)
  {
    const JsonHandle root = ParseJson(text, this->Name_ + " cannot be used");
    if (!json_is_object(root.get()))
    {
      this->Fail("", "must be an object with \"raters\", \"training\", ...");
    }
    this->List_.Path = this->Name_;
    this->ReadRaterNames(json_object_get(root.get(), "raters"));
    const std::vector<int64_t> values = this->ReadValues(json_object_get(root.get(), "value"), "");
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
    return this->List_;
  }

private:
  [[noreturn]] void Fail(const std::string& where, const std::string& what) const
  {
    throw Error(RCN_EFORMAT, this->Name_ + (where.empty() ? " " : ", case " + where + ": ") + what);
  }

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

  std::vector<int64_t> ReadValues(json_t* value, const std::string& where) const
  {
    std::vector<int64_t> values;
    const size_t count = json_is_array(value) ? json_array_size(value) : value && !json_is_null(value) ? 1 : 0;
    for (size_t i = 0; i < count; ++i)
    {
      json_t* one = json_is_array(value) ? json_array_get(value, i) : value;
      if (!json_is_integer(one) || json_integer_value(one) > LargestLabel || json_integer_value(one) < -LargestLabel)
      {
        this->Fail(where, "\"value\" must be a whole number or an array of them.");
      }
      values.push_back(json_integer_value(one));
    }
    return values;
  }

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

  void ReadCase(json_t* entry, const char* split, size_t index, const std::vector<int64_t>& listValues)
  {
    Case one;
    one.Split = split;
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
        if (this->ReadFile(rater, file, one.Id, values))
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
        if (this->ReadFile(rater, json_array_get(label, i), one.Id, values))
        {
          one.Raters.push_back(rater);
        }
      }
    }
    else
    {
      RaterFile file;
      this->ReadFile(file, label, one.Id, values);
      const size_t count = this->NamesGiven_ ? this->List_.Raters.size() : 1;
      for (size_t i = 0; i < count; ++i)
      {
        file.Name = this->NameAt(i, one.Id);
        file.Channel = count > 1 ? static_cast<int>(i) : -1;
        one.Raters.push_back(file);
      }
    }
    if (one.Raters.empty())
    {
      this->Fail(one.Id, "has no rater.");
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
  std::string NamedCase_, NumberedCase_; // where raters' names came from, when "raters" gives none
  std::set<std::string> Ids_;
};

} // namespace

DataList ParseDataList(const std::string& text, const std::string& folder, const std::string& name)
{
  return Parser(folder, name).Parse(text);
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
  const std::string::size_type colon = rater.Path.rfind(':');
  if (colon == std::string::npos || fs::exists(rater.Path, ignored))
  {
    return rater;
  }
  const std::string values = rater.Path.substr(colon + 1);
  rater.Path.resize(colon);
  const char* at = values.c_str();
  for (;;)
  {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(at, &end, 10);
    if (end == at || errno || (*end && *end != ',') || value > LargestLabel || value < -LargestLabel)
    {
      throw Error(RCN_EINVALID,
        argument + ": '" + values + "' after the colon is not a label value; give whole numbers such as :3 or :1,3.");
    }
    rater.Values.push_back(value);
    if (!*end)
    {
      return rater;
    }
    at = end + 1;
  }
}

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
    const bool apart = other && other->Split != one.Split && (!redivided || other->Split == "test" || one.Split == "test");
    if (apart)
    {
      refuse("the patient " + one.Patient, *other, one, "keep all cases of a patient in one split.");
    }
    other = other ? other : &one;
  }
}

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
