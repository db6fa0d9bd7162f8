// SPDX-License-Identifier: Apache-2.0
/// What tests inside Slicer need that are not started by the application.
#ifndef rcnSlicerTest_h
#define rcnSlicerTest_h

#include <vtkMRMLScene.h>
#include <vtkNew.h>
#include <vtkSlicerSegmentationsModuleLogic.h>

#include "rcnTest.h"

/// Rules to convert segments, which the Segmentations module gives the application.
inline void RegisterWhatModulesRegister()
{
  static const bool registered = [] {
    vtkNew<vtkMRMLScene> scene;
    vtkNew<vtkSlicerSegmentationsModuleLogic> segmentations;
    segmentations->SetMRMLScene(scene);
    return true;
  }();
  (void)registered;
}

#endif
