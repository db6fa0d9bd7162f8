// SPDX-License-Identifier: Apache-2.0
/// JSON is built as it reads, and its fields are checked for kind and range.
#include <filesystem>

#include "rcnJson.h"
#include "rcnTemporaryFolder.h"

#include "rcnTest.h"

namespace
{

void ValuesAreWhatTheyWere()
{
  const std::vector<std::string> names = { "A", "B" };
  const double numbers[] = { 0.5, NAN };
  rcn::JsonObject object{ { "count", 3 }, { "large", int64_t{ 1 } << 60 }, { "share", 0.5 }, { "undefined", NAN },
    { "yes", true }, { "name", "x" }, { "text", std::string("a\"b") }, { "names", names }, { "none", nullptr },
    { "list", rcn::Json(numbers, 2) }, { "kind", RCN_EIO } };
  object.Set("inner", rcn::JsonObject{ { "a", 1 } }).Set("mixed", rcn::JsonArray{ 1, "two", nullptr });
  CHECK(rcn::CompactJsonText(object.Get()) ==
    "{\"count\":3,\"large\":1152921504606846976,\"share\":0.5,\"undefined\":null,\"yes\":true,\"name\":\"x\","
    "\"text\":\"a\\\"b\",\"names\":[\"A\",\"B\"],\"none\":null,\"list\":[0.5,null],\"kind\":" +
      std::to_string(RCN_EIO) + ",\"inner\":{\"a\":1},\"mixed\":[1,\"two\",null]}");
  const std::map<std::string, std::string> byKey = { { "a", "x" }, { "b", "y" } };
  CHECK(rcn::CompactJsonText(rcn::Json(byKey).Get()) == "{\"a\":\"x\",\"b\":\"y\"}");
  const rcn::Json copy = object; // the same value, not a copy of it
  CHECK(copy.Get() == object.Get());
  CHECK(rcn::CompactJsonText(rcn::Json("caf\xe9").Get()) == "\"caf?\"");
}

void FieldsAreChecked()
{
  const rcn::JsonHandle root = rcn::ParseJson(
    R"({"text": "a", "yes": true, "n": 7, "x": 0.5, "numbers": [1, 2.5], "texts": ["a"],
        "mixed": [1, "a"], "object": {"n": 1}, "objects": [{"n": 1}, {"n": 2}], "names": {"b": "y", "a": "x"}})",
    "f.json is not valid");
  const rcn::JsonReader reader(root.get(), "f.json is not valid", "Write it again.");
  CHECK(reader.Text("text") == "a" && reader.Text("absent", "b") == "b");
  CHECK(reader.Boolean("yes") && reader.Boolean("absent", true));
  CHECK(reader.WholeNumber("n", 0, 7) == 7 && reader.WholeNumber("absent", 0, 7, 3) == 3);
  CHECK(reader.Number("x", 0, 1) == 0.5 && reader.Number("n", 0, 10) == 7 && reader.Number("absent", 0, 1, 2) == 2);
  CHECK((reader.Numbers("numbers") == std::vector<double>{ 1, 2.5 }) && reader.Numbers("absent").empty());
  CHECK(reader.Texts("texts") == std::vector<std::string>{ "a" });
  CHECK(reader.Object("object").WholeNumber("n", 0, 9) == 1 && !reader.Object("absent").Has("n"));
  CHECK(reader.Objects("objects").size() == 2 && reader.Objects("objects")[1].WholeNumber("n", 0, 9) == 2);
  CHECK((reader.TextsByKey("names") == std::map<std::string, std::string>{ { "a", "x" }, { "b", "y" } }));
  CHECK(reader.TextsByKey("absent").empty());
  CHECK_THROWS(reader.TextsByKey("object"), RCN_EFORMAT, "\"n\" must be a text.");
  CHECK_THROWS(reader.Text("n"), RCN_EFORMAT, "f.json is not valid: \"n\" must be a text. Write it again.");
  CHECK_THROWS(reader.Text("absent"), RCN_EFORMAT, "\"absent\" must be a text.");
  CHECK_THROWS(reader.Boolean("n", false), RCN_EFORMAT, "\"n\" must be true or false.");
  CHECK_THROWS(reader.WholeNumber("n", 0, 6), RCN_EFORMAT, "\"n\" must be a whole number from 0 to 6.");
  CHECK_THROWS(reader.WholeNumber("x", 0, 6, 1), RCN_EFORMAT, "\"x\" must be a whole number from 0 to 6.");
  CHECK_THROWS(reader.Number("x", 1, 2.5), RCN_EFORMAT, "\"x\" must be a number from 1 to 2.5.");
  CHECK_THROWS(reader.Number("text", -HUGE_VAL, HUGE_VAL), RCN_EFORMAT, "\"text\" must be a number.");
  CHECK_THROWS(reader.Numbers("mixed"), RCN_EFORMAT, "\"mixed\" must be a list of numbers.");
  CHECK_THROWS(reader.WholeNumbers("numbers", 0, 9), RCN_EFORMAT, "\"numbers\" must be a list of whole numbers from 0 to 9.");
  CHECK_THROWS(reader.Texts("mixed"), RCN_EFORMAT, "\"mixed\" must be a list of texts.");
  CHECK_THROWS(reader.Texts("text"), RCN_EFORMAT, "\"text\" must be a list.");
  CHECK_THROWS(reader.Object("n"), RCN_EFORMAT, "\"n\" must be an object.");
  CHECK_THROWS(reader.Objects("numbers"), RCN_EFORMAT, "\"numbers\" must be a list of objects.");
}

void BadTextIsNamed()
{
  CHECK_THROWS(rcn::ParseJson("{\"a\": ", "f.json"), RCN_EFORMAT, "f.json: it is not valid JSON (line 1: ");
  CHECK_THROWS(rcn::ParseJson("{\"a\": 1, \"a\": 2}", "f.json"), RCN_EFORMAT, "duplicate");
  CHECK_THROWS(rcn::ParseJson("{\"a\": \"x\\u0000y\"}", "f.json"), RCN_EFORMAT, "it is not valid JSON");
}

/// What is in a folder of its own.
std::vector<std::string> NamesIn(const rcn::TemporaryFolder& folder)
{
  std::vector<std::string> names;
  for (const auto& one : std::filesystem::directory_iterator(folder.Path()))
  {
    names.push_back(one.path().filename().string());
  }
  return names;
}

void DocumentsGrowCaseByCase()
{
  const rcn::TemporaryFolder folder;
  const std::string path = folder / "o.json";
  const rcn::JsonObject one{ { "case", "a \"b\"\n[c]" }, { "none", rcn::JsonArray() }, { "x", 0.1 },
    { "deep", rcn::JsonObject{ { "n", std::vector<int>{ 1, 2 } } } } };
  for (const int count : { 0, 1, 3 })
  {
    for (const rcn::JsonObject& others : { rcn::JsonObject(), rcn::JsonObject{ { "left_out", rcn::JsonArray() }, { "n", 3 } } })
    {
      rcn::JsonArray cases;
      rcn::DocumentFile file(path, "cases");
      for (int i = 0; i < count; ++i)
      {
        file.Add(one.Get());
        cases.Add(json_incref(one.Get()));
      }
      file.Commit(others.Get());
      const rcn::JsonObject whole{ { "cases", cases } };
      json_object_update(whole.Get(), others.Get());
      CHECK(rcn::ReadText(path) == rcn::DocumentText(whole.Get()));
    }
  }
  {
    rcn::DocumentFile dropped(path, "cases");
    dropped.Add(one.Get());
    CHECK(NamesIn(folder).size() == 2);
  }
  CHECK(NamesIn(folder) == std::vector<std::string>{ "o.json" } && rcn::ReadText(path).find("\"n\": 3") != std::string::npos);
}

void TextsGrowInParts()
{
  const rcn::TemporaryFolder folder;
  const std::string path = folder / "t.csv", large(200000, 'x');
  {
    rcn::TextFile first(path), second(path);
    first.Add("a\n");
    second.Add(large);
    second.Add("\n");
    first.Add(second);
    first.Add("end\n");
    first.Commit();
  }
  CHECK(rcn::ReadText(path) == "a\n" + large + "\nend\n" && NamesIn(folder).size() == 1);
  CHECK_THROWS(rcn::TextFile(folder / "no/t.csv"), RCN_EIO, "does not exist");
}

} // namespace

int main()
{
  RUN(ValuesAreWhatTheyWere);
  RUN(FieldsAreChecked);
  RUN(BadTextIsNamed);
  RUN(DocumentsGrowCaseByCase);
  RUN(TextsGrowInParts);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
