// SPDX-License-Identifier: Apache-2.0
#include "rcnSlicerProgram.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "rcn/rcn.h"
#include "rcnFigure.h"
#include "rcnTemporaryFolder.h"

namespace rcn
{

namespace
{

const char* const ResultFile = "--returnparameterfile";
const char* const Address = "--processinformationaddress";

std::string Element(const std::string& name, const std::string& text)
{
  return "<" + name + ">" + XmlEscape(text) + "</" + name + ">\n";
}

std::string Sentence(std::string words)
{
  if (!words.empty())
  {
    words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
    words += words.back() == '.' ? "" : ".";
  }
  return words;
}

std::string Number(double value)
{
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

const Option& FindOption(const Command& command, const std::string& name)
{
  const auto found =
    std::find_if(command.Options.begin(), command.Options.end(), [&](const Option& o) { return o.Name == name; });
  if (found == command.Options.end())
  {
    throw Error(RCN_EINTERNAL, "rater-consensus " + command.Name + " has no option " + name + " for Slicer's panel.");
  }
  return *found;
}

/// The parameter as an option of this program, with the command's own words and choices.
Option PanelOption(const SlicerParameter& parameter, const Command& command)
{
  Option option;
  option.Name = "--" + parameter.Name;
  option.Argument = parameter.Tag == "boolean" ? "" : parameter.Tag == "image" || parameter.Tag == "file" ? "FILE" : "VALUE";
  if (!parameter.Option.empty())
  {
    const Option& own = FindOption(command, parameter.Option);
    option.Help = own.Help;
    option.Choices = own.Choices;
    if (!parameter.IsPlanned &&
      ((parameter.Tag == "boolean") != own.Argument.empty() || (parameter.Tag == "string-enumeration") != !own.Choices.empty()))
    {
      throw Error(
        RCN_EINTERNAL, "Slicer's panel has " + parameter.Name + " as " + parameter.Tag + ", which " + own.Name + " is not.");
    }
  }
  if (!parameter.Help.empty())
  {
    option.Help = parameter.Help;
  }
  if (!option.Choices.empty() && !parameter.Unset.empty())
  {
    option.Choices.insert(option.Choices.begin(), parameter.Unset);
  }
  return option;
}

std::string ParameterXml(const SlicerParameter& parameter, const Command& command)
{
  const Option option = PanelOption(parameter, command);
  std::string xml = "<" + parameter.Tag + (parameter.Attributes.empty() ? "" : " " + parameter.Attributes) + ">\n" +
    Element("name", parameter.Name) + Element("longflag", parameter.Name) + Element("label", parameter.Label) +
    Element("description", Sentence(option.Help));
  const bool isFile =
    parameter.Tag == "image" || parameter.Tag == "table" || parameter.Tag == "file" || parameter.Tag == "directory";
  if (isFile)
  {
    xml += Element("channel", parameter.IsOutput ? "output" : "input");
  }
  else if (parameter.Tag != "string" || !parameter.Default.empty())
  {
    xml += Element("default", parameter.Tag == "boolean" ? "false" : parameter.Default);
  }
  for (const std::string& choice : option.Choices)
  {
    xml += Element("element", choice);
  }
  if (!parameter.Range.empty())
  {
    xml += "<constraints>\n" + Element("minimum", Number(parameter.Range[0])) + Element("maximum", Number(parameter.Range[1])) +
      Element("step", Number(parameter.Range[2])) + "</constraints>\n";
  }
  return xml + "</" + parameter.Tag + ">\n";
}

const json_t* Find(const json_t* json, const std::string& key)
{
  std::string::size_type at = 0;
  while (json && at <= key.size())
  {
    const std::string::size_type end = std::min(key.find('.', at), key.size());
    const std::string part = key.substr(at, end - at);
    json =
      json_is_array(json) ? json_array_get(json, std::strtoul(part.c_str(), nullptr, 10)) : json_object_get(json, part.c_str());
    at = end + 1;
  }
  return json;
}

/// Progress in the tags that Slicer looks for on standard output. Remarks go there as plain text: what stands on standard
/// error is shown as an error.
class SlicerListener : public Listener
{
public:
  explicit SlicerListener(const SlicerProgram& program) : Name_(program.Name)
  {
    this->Say("<filter-start>\n<filter-name>" + XmlEscape(this->Name_) + "</filter-name>\n<filter-comment>" +
      XmlEscape(program.Title) + "</filter-comment>\n</filter-start>\n");
    Terminal::SetListener(this);
  }
  ~SlicerListener() override { Terminal::SetListener(nullptr); }

  void Progress(double fraction, const std::string& stage) override
  {
    // Slicer searches all it has heard with every piece of news, and looks ten times in a second.
    const auto now = std::chrono::steady_clock::now();
    if (now - this->Last_ > std::chrono::milliseconds(100))
    {
      this->Last_ = now;
      this->Say("<filter-comment>" + XmlEscape(stage) + "</filter-comment>\n<filter-progress>" + Number(fraction) +
        "</filter-progress>\n");
    }
  }

  void Remark(const std::string& sentence) override
  {
    this->LastRemark = sentence;
    this->Say(sentence + "\n");
  }

  void End()
  {
    this->Say("<filter-progress>1</filter-progress>\n<filter-end>\n<filter-name>" + XmlEscape(this->Name_) +
      "</filter-name>\n<filter-time>" + Number(this->Watch_.Lap()) + "</filter-time>\n</filter-end>\n");
  }

  std::string LastRemark;

private:
  void Say(const std::string& text) { WriteText("-", text); }

  std::string Name_;
  std::chrono::steady_clock::time_point Last_;
  Stopwatch Watch_;
};

} // namespace

// ---- the description -------------------------------------------------------------------------------

std::string SlicerProgram::Xml() const
{
  std::string xml = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<executable>\n" + Element("category", "Segmentation") +
    Element("title", this->Title) + Element("description", this->Description + " For research, not for clinical use.") +
    Element("version", RCN_VERSION) + Element("documentation-url", "") + Element("license", "Apache 2.0") +
    Element("contributor", "The RaterConsensus developers");
  std::set<std::string> shown = this->LeftOut;
  for (const SlicerGroup& group : this->Groups)
  {
    xml += std::string("<parameters") + (group.IsAdvanced ? " advanced=\"true\"" : "") + ">\n" + Element("label", group.Label) +
      Element("description", group.Description);
    for (const SlicerParameter& parameter : group.Parameters)
    {
      xml += ParameterXml(parameter, this->What);
      shown.insert(parameter.Option);
    }
    xml += "</parameters>\n";
  }
  for (const std::string& name : this->LeftOut)
  {
    FindOption(this->What, name);
  }
  for (const Option& option : this->What.Options)
  {
    if (!shown.count(option.Name))
    {
      throw Error(RCN_EINTERNAL, "Slicer's panel for " + this->What.Name + " knows nothing of " + option.Name + ".");
    }
  }
  xml +=
    "<parameters>\n" + Element("label", "Results") + Element("description", "What came out; empty where it is not defined.");
  for (const SlicerResult& result : this->Results)
  {
    xml += "<" + result.Tag + ">\n" + Element("name", result.Name) + Element("label", result.Label) +
      Element("description", Sentence(result.Help)) + Element("channel", "output") + Element("default", "") + "</" +
      result.Tag + ">\n";
  }
  return xml + "</parameters>\n</executable>\n";
}

std::vector<Option> SlicerProgram::PanelOptions() const
{
  std::vector<Option> options;
  for (const SlicerGroup& group : this->Groups)
  {
    for (const SlicerParameter& parameter : group.Parameters)
    {
      options.push_back(PanelOption(parameter, this->What));
    }
  }
  options.push_back({ ResultFile, "FILE", "where Slicer looks for results" });
  options.push_back({ Address, "ADDRESS", "of no use outside Slicer's own process" });
  return options;
}

// ---- running ---------------------------------------------------------------------------------------

int SlicerProgram::Start(const Arguments& given) const
{
  SlicerPlan plan;
  for (const SlicerGroup& group : this->Groups)
  {
    for (const SlicerParameter& parameter : group.Parameters)
    {
      const std::string name = "--" + parameter.Name;
      if (parameter.Option.empty() || parameter.IsPlanned || !given.Has(name) ||
        (!parameter.Unset.empty() && given.Get(name) == parameter.Unset))
      {
        continue;
      }
      plan.Words.push_back(parameter.Option);
      if (parameter.Tag != "boolean")
      {
        plan.Words.push_back(given.Get(name));
      }
    }
  }
  this->Plan(plan, given);
  const std::string resultFile = given.Get(ResultFile);
  const std::string sentence = resultFile.empty() ? "" : CheckText(resultFile);
  if (!sentence.empty())
  {
    throw Error(RCN_EIO, std::string(ResultFile) + " " + sentence);
  }
  // The command tells its results as JSON; where nobody asked for that file, it is a temporary one.
  std::unique_ptr<TemporaryFolder> temporary;
  std::string json = given.Get("--json");
  if (json.empty() && (!resultFile.empty() || plan.Finish))
  {
    temporary = std::make_unique<TemporaryFolder>();
    json = *temporary / "results.json";
    plan.Words.insert(plan.Words.end(), { "--json", json });
  }
  SlicerListener listener(*this);
  int code = FailedWhileWorking;
  try
  {
    const Arguments arguments = ParseArguments(plan.Words, this->Name, this->What.Options);
    this->CheckOutputs(given, arguments);
    code = this->What.Run(arguments);
  }
  catch (const Error& error)
  {
    throw Error(error.Status(), this->InPanelWords(error.what(), given));
  }
  if (!json.empty() && (plan.Finish || !resultFile.empty()))
  {
    json_error_t error;
    const JsonHandle answer(json_loads(ReadText(json).c_str(), 0, &error));
    if (plan.Finish)
    {
      plan.Finish(answer.get());
    }
    std::string text;
    for (const SlicerResult& result : this->Results)
    {
      text += result.Name + " = " + OneLine(TextOf(Find(answer.get(), result.Key))) + "\n";
    }
    if (!resultFile.empty())
    {
      WriteText(resultFile, text);
    }
  }
  listener.End();
  if (code != Done)
  {
    std::fprintf(stderr, "%s: %s\n", this->Name.c_str(), listener.LastRemark.c_str());
  }
  return code;
}

void SlicerProgram::CheckOutputs(const Arguments& given, const Arguments& planned) const
{
  std::vector<NamedFile> outputs;
  for (const SlicerGroup& group : this->Groups)
  {
    for (const SlicerParameter& parameter : group.Parameters)
    {
      if (parameter.IsOutput && parameter.Tag != "directory" && given.Has("--" + parameter.Name))
      {
        outputs.push_back({ "--" + parameter.Name, given.Get("--" + parameter.Name) });
      }
    }
  }
  std::string sentence = CheckOverwrite(outputs, FilesRead(this->What.Options, planned));
  sentence = sentence.empty() ? CheckFiles(this->What, planned) : sentence;
  if (!sentence.empty())
  {
    throw Error(RCN_EINVALID, sentence);
  }
}

std::string SlicerProgram::InPanelWords(std::string sentence, const Arguments& given) const
{
  const auto replace = [&](const std::string& what, const std::string& label) {
    std::string::size_type at = what.empty() ? std::string::npos : sentence.find(what);
    while (at != std::string::npos)
    {
      const char next = at + what.size() < sentence.size() ? sentence[at + what.size()] : ' ';
      const bool isWhole =
        !std::isalnum(static_cast<unsigned char>(next)) && next != '-'; // "--region" is in "--region-mask", too
      if (isWhole)
      {
        sentence.replace(at, what.size(), label);
      }
      at = sentence.find(what, at + (isWhole ? label.size() : what.size()));
    }
  };
  for (const SlicerGroup& group : this->Groups)
  {
    for (const SlicerParameter& parameter : group.Parameters)
    {
      if (parameter.Tag == "image")
      {
        replace(given.Get("--" + parameter.Name), parameter.Label);
      }
      if (parameter.Option.rfind("--", 0) == 0)
      {
        replace(parameter.Option, "'" + parameter.Label + "'");
      }
    }
  }
  return sentence;
}

int SlicerProgram::Run(const std::vector<std::string>& words) const
{
  for (const std::string& word : words)
  {
    if (word == "--xml")
    {
      WriteText("-", this->Xml());
      return Done;
    }
    if (word == "--version")
    {
      WriteText("-", this->Name + " " RCN_VERSION "\n");
      return Done;
    }
    if (word == "--help" || word == "-h")
    {
      const Command self = { this->Name, this->Title, {},
        this->Description +
          " For research, not for clinical use. Slicer starts "
          "this program; people at a terminal use rater-consensus " +
          this->What.Name + ".",
        this->PanelOptions(), nullptr };
      WriteText("-", HelpText(self));
      return Done;
    }
  }
  return this->Start(ParseArguments(words, this->Name, this->PanelOptions()));
}

int SlicerProgram::Main(int argc, char** argv) const
{
  BeginProgram();
  return RunProgram([&] { return this->Run(std::vector<std::string>(argv + 1, argv + argc)); },
    [this](const std::string& sentence, int) { std::fprintf(stderr, "%s: %s\n", this->Name.c_str(), sentence.c_str()); });
}

// ---- what the programs share -----------------------------------------------------------------------

std::string TextOf(const json_t* value)
{
  std::string text;
  const auto add = [&](const json_t* one) { text += (text.empty() ? "" : ",") + TextOf(one); };
  if (json_is_string(value))
  {
    return json_string_value(value);
  }
  if (json_is_array(value))
  {
    if (json_is_object(json_array_get(value, 0)))
    {
      return std::to_string(json_array_size(value));
    }
    for (size_t i = 0; i < json_array_size(value); ++i)
    {
      add(json_array_get(value, i));
    }
    return text;
  }
  if (json_is_object(value))
  {
    for (void* at = json_object_iter(const_cast<json_t*>(value)); at;
      at = json_object_iter_next(const_cast<json_t*>(value), at))
    {
      add(json_object_iter_value(at));
    }
    return text;
  }
  if (value && !json_is_null(value))
  {
    text = JsonText(value);
    text.erase(text.find_last_not_of("\r\n") + 1);
  }
  return text;
}

std::vector<std::string> SlicerRaterPlaceNames()
{
  std::vector<std::string> names;
  for (int r = 1; r <= SlicerRaterPlaces; ++r)
  {
    names.push_back("rater" + std::to_string(r));
  }
  return names;
}

std::string Required(const Arguments& given, const std::string& name, const std::string& sentence)
{
  const std::string value = given.Get("--" + name);
  if (value.empty())
  {
    throw Error(RCN_EINVALID, sentence);
  }
  return value;
}

std::vector<SlicerGroup> SlicerRaterGroups()
{
  SlicerGroup first = { "Raters",
    "Who outlined the structure: a label map for each, or a segmentation whose segments are the raters.", false, {} };
  SlicerGroup more = { "More raters", "For more than these, use a segmentation with a segment for each, or a data list.", true,
    {} };
  for (int r = 1; r <= SlicerRaterPlaces; ++r)
  {
    const std::string number = std::to_string(r);
    (2 * r <= SlicerRaterPlaces ? first : more)
      .Parameters.push_back({ "image", "rater" + number, "Rater " + number, "--rater", "", "type=\"label\"",
        "one rater's label map, where any value but 0 is marked, or a segmentation; several segments are several raters", "",
        {}, false, true });
  }
  first.Parameters.push_back({ "string", "rater_names", "Names", "", "", "",
    "names of the raters above in this order, with commas between; a segmentation of several raters brings its own" });
  return { first, more };
}

void AddRaters(std::vector<std::string>& words, const Arguments& given)
{
  std::vector<std::string> names;
  const std::string text = given.Get("--rater_names");
  for (std::string::size_type at = 0; at < text.size();)
  {
    const std::string::size_type end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    const std::string::size_type begin = name.find_first_not_of(' ');
    names.push_back(begin == std::string::npos ? "" : name.substr(begin, name.find_last_not_of(' ') + 1 - begin));
    at = end + 1;
  }
  if (text.find('=') != std::string::npos)
  {
    throw Error(RCN_EINVALID, "A rater's name cannot have the character =.");
  }
  size_t count = 0;
  for (int r = 1; r <= SlicerRaterPlaces; ++r)
  {
    const std::string place = "--rater" + std::to_string(r);
    if (!given.Has(place))
    {
      continue;
    }
    const std::string path = given.Get(place);
    RaterFile file;
    file.Path = path;
    const std::vector<RaterFile> found = RatersIn(file);
    const std::string name = count < names.size() && !names[count].empty() ? names[count] : "Rater " + std::to_string(r);
    ++count;
    const std::string value = found.size() == 1 && !found[0].Values.empty() ? ":" + std::to_string(found[0].Values[0]) : "";
    words.insert(words.end(), { "--rater", found.size() == 1 ? name + "=" + path + value : path });
  }
  if (count == 0)
  {
    throw Error(RCN_EINVALID, "Choose at least one rater.");
  }
  if (names.size() > count)
  {
    throw Error(RCN_EINVALID,
      "There are " + Counted(static_cast<int64_t>(names.size()), "name") + " for " +
        Counted(static_cast<int64_t>(count), "rater") + ".");
  }
}

SlicerGroup SlicerListGroup(const std::vector<SlicerParameter>& more)
{
  SlicerGroup group = { "Many cases", "Instead of volumes of the scene: all cases of a data list, from files to files.", true,
    { { "file", "data", "Data list", "--data", "", "fileExtensions=\".json\"", "all cases of this data list (JSON)" },
      { "string-enumeration", "split", "Which cases", "--split", "all", "", "which cases of the data list", "all" } } };
  group.Parameters.insert(group.Parameters.end(), more.begin(), more.end());
  return group;
}

bool IsList(const Arguments& given, const std::vector<std::string>& volumes, const std::string& advice)
{
  const bool isScene =
    std::any_of(volumes.begin(), volumes.end(), [&](const std::string& name) { return given.Has("--" + name); });
  if (isScene == given.Has("--data"))
  {
    throw Error(
      RCN_EINVALID, isScene ? "Choose either volumes of the scene or a data list, not both." : advice + ", or a data list.");
  }
  return !isScene;
}

SlicerGroup SlicerDetailGroup(const std::vector<SlicerParameter>& first, bool masks)
{
  SlicerGroup group = { "Details", "What rarely needs a change.", true, first };
  if (masks)
  {
    group.Parameters.push_back({ "boolean", "resample", "Resample masks", "--resample" });
    group.Parameters.push_back({ "string", "unanswered", "Unanswered value", "--unanswered" });
  }
  group.Parameters.push_back({ "double", "tolerance", "Tolerance (voxels)", "--tolerance", "0.01" });
  group.Parameters.push_back({ "integer", "threads", "Threads", "--threads", "0", "", "how many threads; 0: all cores" });
  group.Parameters.push_back({ "file", "json", "Results (JSON)", "--json", "", "fileExtensions=\".json\"",
    "file for all results, for other programs", "", {}, true });
  return group;
}

} // namespace rcn
