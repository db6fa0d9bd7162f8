// SPDX-License-Identifier: Apache-2.0
#include "rcnJson.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rcn/rcn.h"

namespace rcn
{

// JSON knows no NaN.
json_t* JsonNumber(double value)
{
  return std::isfinite(value) ? json_real(value) : json_null();
}

json_t* JsonString(const std::string& text)
{
  if (json_t* string = json_string(text.c_str()))
  {
    return string;
  }
  // Not UTF-8 (an old file name, say): show what can be shown.
  std::string readable = text;
  for (char& c : readable)
  {
    c = static_cast<unsigned char>(c) < 128 ? c : '?';
  }
  return json_string(readable.c_str());
}

json_t* JsonStrings(const std::vector<std::string>& strings)
{
  json_t* array = json_array();
  for (const std::string& text : strings)
  {
    json_array_append_new(array, JsonString(text));
  }
  return array;
}

JsonHandle ParseJson(const std::string& text, const std::string& about, const std::string& remedy)
{
  json_error_t error; // without JSON_ALLOW_NUL: no text hides an end in its middle
  JsonHandle root(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error));
  if (!root)
  {
    JsonReader(nullptr, about, remedy)
      .Fail("it is not valid JSON (line " + std::to_string(error.line) + ": " + std::string(error.text) + ").");
  }
  return root;
}

// ---- checked fields --------------------------------------------------------------------------------

namespace
{

/// Whole numbers only: 3.0 is refused where a count is wanted.
bool IsWithin(const json_t* value, int64_t low, int64_t high)
{
  return json_is_integer(value) && json_integer_value(value) >= low && json_integer_value(value) <= high;
}

bool IsWithin(const json_t* value, double low, double high)
{
  return json_is_number(value) && json_number_value(value) >= low && json_number_value(value) <= high;
}

/// " from 0 to 1"; nothing where there is no limit.
std::string RangeText(double low, double high)
{
  const auto text = [](double number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.15g", number);
    return std::string(digits);
  };
  return std::isfinite(low) && std::isfinite(high) ? " from " + text(low) + " to " + text(high) : "";
}

std::string RangeText(int64_t low, int64_t high)
{
  return " from " + std::to_string(low) + " to " + std::to_string(high);
}

} // namespace

// Every refusal says which file it is about and, where there is one, the way out.
void JsonReader::Fail(const std::string& what) const
{
  throw Error(RCN_EFORMAT, this->About_ + ": " + what + (this->Remedy_.empty() ? "" : " " + this->Remedy_));
}

// Always the same words, so that a person recognizes them: the key, and what it must be.
void JsonReader::Refuse(const std::string& key, const std::string& kind) const
{
  this->Fail("\"" + key + "\" must be " + kind + ".");
}

std::string JsonReader::Text(const std::string& key) const
{
  const json_t* value = this->Get(key);
  if (!json_is_string(value))
  {
    this->Refuse(key, "a text");
  }
  return json_string_value(value);
}

bool JsonReader::Boolean(const std::string& key) const
{
  const json_t* value = this->Get(key);
  if (!json_is_boolean(value))
  {
    this->Refuse(key, "true or false");
  }
  return json_is_true(value);
}

int64_t JsonReader::WholeNumber(const std::string& key, int64_t low, int64_t high) const
{
  const json_t* value = this->Get(key);
  if (!IsWithin(value, low, high))
  {
    this->Refuse(key, "a whole number" + RangeText(low, high));
  }
  return json_integer_value(value);
}

double JsonReader::Number(const std::string& key, double low, double high) const
{
  const json_t* value = this->Get(key);
  if (!IsWithin(value, low, high))
  {
    this->Refuse(key, "a number" + RangeText(low, high));
  }
  return json_number_value(value);
}

std::string JsonReader::Text(const std::string& key, const std::string& fallback) const
{
  return this->Has(key) ? this->Text(key) : fallback;
}

bool JsonReader::Boolean(const std::string& key, bool fallback) const
{
  return this->Has(key) ? this->Boolean(key) : fallback;
}

int64_t JsonReader::WholeNumber(const std::string& key, int64_t low, int64_t high, int64_t fallback) const
{
  return this->Has(key) ? this->WholeNumber(key, low, high) : fallback;
}

double JsonReader::Number(const std::string& key, double low, double high, double fallback) const
{
  return this->Has(key) ? this->Number(key, low, high) : fallback;
}

// A key that is absent is an empty list; one that is something else is a mistake, and named.
std::vector<const json_t*> JsonReader::Array(const std::string& key) const
{
  const json_t* array = this->Get(key);
  if (array && !json_is_array(array))
  {
    this->Refuse(key, "a list");
  }
  std::vector<const json_t*> elements(json_array_size(array));
  for (size_t i = 0; i < elements.size(); ++i)
  {
    elements[i] = json_array_get(array, i);
  }
  return elements;
}

std::vector<double> JsonReader::Numbers(const std::string& key, double low, double high) const
{
  std::vector<double> numbers;
  for (const json_t* element : this->Array(key))
  {
    if (!IsWithin(element, low, high))
    {
      this->Refuse(key, "a list of numbers" + RangeText(low, high));
    }
    numbers.push_back(json_number_value(element));
  }
  return numbers;
}

std::vector<int64_t> JsonReader::WholeNumbers(const std::string& key, int64_t low, int64_t high) const
{
  std::vector<int64_t> numbers;
  for (const json_t* element : this->Array(key))
  {
    if (!IsWithin(element, low, high))
    {
      this->Refuse(key, "a list of whole numbers" + RangeText(low, high));
    }
    numbers.push_back(json_integer_value(element));
  }
  return numbers;
}

std::vector<std::string> JsonReader::Texts(const std::string& key) const
{
  std::vector<std::string> texts;
  for (const json_t* element : this->Array(key))
  {
    if (!json_is_string(element))
    {
      this->Refuse(key, "a list of texts");
    }
    texts.push_back(json_string_value(element));
  }
  return texts;
}

// For objects whose keys are data, such as names of maps.
std::map<std::string, std::string> JsonReader::TextsByKey(const std::string& key) const
{
  std::map<std::string, std::string> texts;
  const JsonReader object = this->Object(key);
  const char* name;
  json_t* ignored;
  json_object_foreach(const_cast<json_t*>(object.Object_), name, ignored)
  {
    texts[name] = object.Text(name);
  }
  return texts;
}

JsonReader JsonReader::Object(const std::string& key) const
{
  const json_t* object = this->Get(key);
  if (object && !json_is_object(object))
  {
    this->Refuse(key, "an object");
  }
  return JsonReader(object, this->About_, this->Remedy_);
}

std::vector<JsonReader> JsonReader::Objects(const std::string& key) const
{
  std::vector<JsonReader> objects;
  for (const json_t* element : this->Array(key))
  {
    if (!json_is_object(element))
    {
      this->Refuse(key, "a list of objects");
    }
    objects.emplace_back(element, this->About_, this->Remedy_);
  }
  return objects;
}

// ---- text ------------------------------------------------------------------------------------------

namespace
{

std::string Dump(const json_t* value, size_t flags)
{
  // 17 digits: a double comes back with the same bits.
  const std::unique_ptr<char, void (*)(void*)> text(
    json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17) | flags), std::free);
  if (!text)
  {
    throw Error(RCN_ENOMEM, "Out of memory for the JSON text.");
  }
  return text.get();
}

} // namespace

std::string JsonText(const json_t* value)
{
  return Dump(value, JSON_INDENT(1)) + "\n";
}

std::string CompactJsonText(const json_t* value)
{
  return Dump(value, JSON_COMPACT);
}

// The version of the program comes first in all files, where a person looks.
std::string DocumentText(const json_t* object)
{
  const JsonObject document{ { "version", RCN_VERSION } };
  json_object_update_missing(document.Get(), const_cast<json_t*>(object));
  return JsonText(document.Get());
}

namespace
{

/// A value as it stands inside of others, without a line end. There are no line ends inside of JSON's texts.
std::string Indented(const json_t* value, size_t spaces)
{
  std::string text;
  for (const char c : Dump(value, JSON_INDENT(1)))
  {
    text += c;
    text.append(c == '\n' ? spaces : 0, ' ');
  }
  return text;
}

} // namespace

DocumentFile::DocumentFile(const std::string& path, const std::string& listKey) : File_(path)
{
  const std::string start = DocumentText(JsonObject{ { listKey, JsonArray() } }.Get()); // ... []\n}\n
  this->File_.Add(start.substr(0, start.size() - 4));
}

void DocumentFile::Add(const json_t* one)
{
  this->File_.Add((this->HasSome_ ? ",\n  " : "\n  ") + Indented(one, 2));
  this->HasSome_ = true;
}

void DocumentFile::Commit(const json_t* others)
{
  const std::string rest = Dump(others, JSON_INDENT(1)); // "{\n ... \n}", or "{}"
  this->File_.Add((this->HasSome_ ? "\n ]" : "]") + (rest == "{}" ? "\n}" : "," + rest.substr(1)) + "\n");
  this->File_.Commit();
}

} // namespace rcn
