// SPDX-License-Identifier: Apache-2.0
#include "vtkMRMLRaterConsensusNode.h"

#include <vtkObjectFactory.h>

#include "vtkMRMLNodePropertyMacros.h"
#include "vtkMRMLScene.h"

namespace
{

const char* const ImageRole = "image";

/// A role for each rater: MRML takes the reference of a node that leaves the scene out of a role's list, which would give
/// the raters after it the wrong masks.
std::string RaterRole(int n)
{
  return "rater" + std::to_string(n);
}

/// Names may hold anything: what separates them is written as %XX.
std::string Encode(const std::string& text)
{
  static const char* const digits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text)
  {
    const unsigned char code = static_cast<unsigned char>(c);
    if (c == '%' || c == ';' || c == ',' || code < ' ')
    {
      encoded += '%';
      encoded += digits[code / 16];
      encoded += digits[code % 16];
    }
    else
    {
      encoded += c;
    }
  }
  return encoded;
}

std::string Decode(const std::string& text)
{
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i)
  {
    if (text[i] == '%' && i + 2 < text.size())
    {
      decoded += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    }
    else
    {
      decoded += text[i];
    }
  }
  return decoded;
}

std::vector<std::string> Split(const std::string& text, char separator)
{
  std::vector<std::string> parts(1);
  for (const char c : text)
  {
    if (c == separator)
    {
      parts.emplace_back();
    }
    else
    {
      parts.back() += c;
    }
  }
  return parts;
}

} // namespace

vtkMRMLNodeNewMacro(vtkMRMLRaterConsensusNode);

vtkMRMLRaterConsensusNode::vtkMRMLRaterConsensusNode()
{
  this->HideFromEditors = 0;
  this->AddNodeReferenceRole(ImageRole, "imageNodeRef");
  for (const char* const role : { GetHeatmapRole(), GetProbabilityRole(), GetLevelRole(), GetMaskRole(), GetVolumesRole(),
         GetAgreementRole(), GetDisputesRole(), GetFiguresRole(), GetReliabilityRole(), GetSeriesRole(), GetChartRole(),
         GetCurvesRole(), GetVisitedRole(), GetTrainingCaseRole() })
  {
    this->AddNodeReferenceRole(role, (std::string(role) + "NodeRef").c_str());
  }
}

vtkMRMLRaterConsensusNode::~vtkMRMLRaterConsensusNode() = default;

void vtkMRMLRaterConsensusNode::SetImageNodeID(const char* id)
{
  this->SetNodeReferenceID(ImageRole, id);
}

const char* vtkMRMLRaterConsensusNode::GetImageNodeID()
{
  return this->GetNodeReferenceID(ImageRole);
}

void vtkMRMLRaterConsensusNode::AddRater(const Rater& rater, const char* nodeID)
{
  const MRMLNodeModifyBlocker blocker(this);
  this->SetNodeReferenceID(RaterRole(this->GetNumberOfRaters()).c_str(), nodeID);
  this->Raters.push_back(rater);
  this->Modified();
}

void vtkMRMLRaterConsensusNode::AddSegment(
  const std::string& name, const char* segmentationNodeID, const std::string& segmentID)
{
  this->AddRater({ name, segmentID, 0 }, segmentationNodeID);
}

void vtkMRMLRaterConsensusNode::AddSegmentation(const std::string& name, const char* segmentationNodeID)
{
  this->AddRater({ name, "", 0 }, segmentationNodeID);
}

void vtkMRMLRaterConsensusNode::AddLabelMap(const std::string& name, const char* labelMapNodeID, int value)
{
  this->AddRater({ name, "", value }, labelMapNodeID);
}

void vtkMRMLRaterConsensusNode::RemoveNthRater(int n)
{
  if (n < 0 || n >= this->GetNumberOfRaters())
  {
    return;
  }
  const MRMLNodeModifyBlocker blocker(this);
  for (int next = n + 1; next < this->GetNumberOfRaters(); ++next)
  {
    const char* const id = this->GetNodeReferenceID(RaterRole(next).c_str());
    this->SetNodeReferenceID(RaterRole(next - 1).c_str(), id ? std::string(id).c_str() : nullptr);
  }
  this->RemoveNodeReferenceIDs(RaterRole(this->GetNumberOfRaters() - 1).c_str());
  this->Raters.erase(this->Raters.begin() + n);
  this->Modified();
}

void vtkMRMLRaterConsensusNode::RemoveAllRaters()
{
  const MRMLNodeModifyBlocker blocker(this);
  for (int n = 0; n < this->GetNumberOfRaters(); ++n)
  {
    this->RemoveNodeReferenceIDs(RaterRole(n).c_str());
  }
  this->Raters.clear();
  this->Modified();
}

int vtkMRMLRaterConsensusNode::GetNumberOfRaters() const
{
  return static_cast<int>(this->Raters.size());
}

std::string vtkMRMLRaterConsensusNode::GetNthRaterName(int n) const
{
  return n >= 0 && n < this->GetNumberOfRaters() ? this->Raters[static_cast<size_t>(n)].Name : std::string();
}

void vtkMRMLRaterConsensusNode::SetNthRaterName(int n, const std::string& name)
{
  if (n >= 0 && n < this->GetNumberOfRaters() && this->Raters[static_cast<size_t>(n)].Name != name)
  {
    this->Raters[static_cast<size_t>(n)].Name = name;
    this->Modified();
  }
}

std::string vtkMRMLRaterConsensusNode::GetNthRaterSegmentID(int n) const
{
  return n >= 0 && n < this->GetNumberOfRaters() ? this->Raters[static_cast<size_t>(n)].SegmentID : std::string();
}

int vtkMRMLRaterConsensusNode::GetNthRaterValue(int n) const
{
  return n >= 0 && n < this->GetNumberOfRaters() ? this->Raters[static_cast<size_t>(n)].Value : 0;
}

vtkMRMLNode* vtkMRMLRaterConsensusNode::GetNthRaterNode(int n)
{
  return n >= 0 && n < this->GetNumberOfRaters() ? this->GetNodeReference(RaterRole(n).c_str()) : nullptr;
}

void vtkMRMLRaterConsensusNode::AddTrainingCase(const char* parameterNodeID)
{
  if (parameterNodeID && !this->HasNodeReferenceID(GetTrainingCaseRole(), parameterNodeID))
  {
    this->AddNodeReferenceID(GetTrainingCaseRole(), parameterNodeID);
    this->Modified();
  }
}

void vtkMRMLRaterConsensusNode::RemoveAllTrainingCases()
{
  this->RemoveNodeReferenceIDs(GetTrainingCaseRole());
  this->Modified();
}

int vtkMRMLRaterConsensusNode::GetNumberOfTrainingCases()
{
  return this->GetNumberOfNodeReferences(GetTrainingCaseRole());
}

vtkMRMLRaterConsensusNode* vtkMRMLRaterConsensusNode::GetNthTrainingCase(int n)
{
  return vtkMRMLRaterConsensusNode::SafeDownCast(this->GetNthNodeReference(GetTrainingCaseRole(), n));
}

std::string vtkMRMLRaterConsensusNode::GetRaters() const
{
  std::string text;
  for (const Rater& rater : this->Raters)
  {
    text += (text.empty() ? "" : ";") + Encode(rater.Name) + "," + Encode(rater.SegmentID) + "," + std::to_string(rater.Value);
  }
  return text;
}

void vtkMRMLRaterConsensusNode::SetRaters(const std::string& text)
{
  this->Raters.clear();
  this->Modified();
  for (const std::string& one : Split(text, ';'))
  {
    if (one.empty())
    {
      continue;
    }
    const std::vector<std::string> parts = Split(one, ',');
    Rater rater;
    rater.Name = Decode(parts[0]);
    rater.SegmentID = parts.size() > 1 ? Decode(parts[1]) : "";
    rater.Value = parts.size() > 2 ? std::atoi(parts[2].c_str()) : 0;
    this->Raters.push_back(rater);
  }
}

// One list of what is kept, for all that goes over it.
#define RATERCONSENSUS_PROPERTIES(Text, Number, Whole, Flag)                                                          \
  Text(raters, Raters) Flag(resample, Resample) Flag(surfaces, Surfaces) Text(method, Method) Number(sigma, Sigma)    \
    Flag(tieBackground, TieBackground) Text(modelFile, ModelFile) Text(readout, Readout) Number(threshold, Threshold) \
      Text(region, Region) Whole(bins, Bins) Text(recalibrationMethod, RecalibrationMethod)                           \
        Text(recalibrationFile, RecalibrationFile) Flag(corrected, Corrected) Text(dataListFile, DataListFile)        \
          Text(trainedModelFile, TrainedModelFile) Number(trainingMinutes, TrainingMinutes) Text(strategy, Strategy)  \
            Text(network, Network) Number(transparentBelow, TransparentBelow) Flag(levelsIn3D, LevelsIn3D)            \
              Text(shownRole, ShownRole) Text(structure, Structure)

void vtkMRMLRaterConsensusNode::ReadXMLAttributes(const char** atts)
{
  const MRMLNodeModifyBlocker blocker(this);
  this->Superclass::ReadXMLAttributes(atts);
  vtkMRMLReadXMLBeginMacro(atts);
  RATERCONSENSUS_PROPERTIES(
    vtkMRMLReadXMLStdStringMacro, vtkMRMLReadXMLFloatMacro, vtkMRMLReadXMLIntMacro, vtkMRMLReadXMLBooleanMacro)
  vtkMRMLReadXMLEndMacro();
}

void vtkMRMLRaterConsensusNode::WriteXML(ostream& of, int indent)
{
  this->Superclass::WriteXML(of, indent);
  vtkMRMLWriteXMLBeginMacro(of);
  RATERCONSENSUS_PROPERTIES(
    vtkMRMLWriteXMLStdStringMacro, vtkMRMLWriteXMLFloatMacro, vtkMRMLWriteXMLIntMacro, vtkMRMLWriteXMLBooleanMacro)
  vtkMRMLWriteXMLEndMacro();
}

#define RATERCONSENSUS_COPY(xmlName, Name) this->Set##Name(source->Get##Name());
void vtkMRMLRaterConsensusNode::CopyContent(vtkMRMLNode* node, bool deepCopy)
{
  const MRMLNodeModifyBlocker blocker(this);
  this->Superclass::CopyContent(node, deepCopy);
  if (vtkMRMLRaterConsensusNode* const source = vtkMRMLRaterConsensusNode::SafeDownCast(node))
  {
    RATERCONSENSUS_PROPERTIES(RATERCONSENSUS_COPY, RATERCONSENSUS_COPY, RATERCONSENSUS_COPY, RATERCONSENSUS_COPY)
  }
}

#define RATERCONSENSUS_PRINT(xmlName, Name) os << indent << #Name << ": " << this->Get##Name() << "\n";
void vtkMRMLRaterConsensusNode::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  RATERCONSENSUS_PROPERTIES(RATERCONSENSUS_PRINT, RATERCONSENSUS_PRINT, RATERCONSENSUS_PRINT, RATERCONSENSUS_PRINT)
}
