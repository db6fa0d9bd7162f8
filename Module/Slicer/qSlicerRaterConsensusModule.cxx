// SPDX-License-Identifier: Apache-2.0
#include "qSlicerRaterConsensusModule.h"

#include <QFile>
#include <QIcon>

#include <qSlicerApplication.h>
#include <vtkSlicerConfigure.h> // Slicer_USE_PYTHONQT

#include "qSlicerRaterConsensusModuleWidget.h"
#include "vtkSlicerRaterConsensusLogic.h"

qSlicerRaterConsensusModule::qSlicerRaterConsensusModule(QObject* parent) : Superclass(parent) {}

qSlicerRaterConsensusModule::~qSlicerRaterConsensusModule() = default;

QString qSlicerRaterConsensusModule::helpText() const
{
  return tr("<p>Experts who segment the same image disagree. This module shows where and how much, fuses their masks into one "
            "map, applies and retrains networks that learned from all of them, and shows whether a probability of "
            "70 % means that 70 % of raters mark the voxel.</p>"
            "<p>Work from top to bottom: choose the image and the raters (segments or label maps), measure their "
            "agreement and visit the disputed places, make a consensus, apply a model, and evaluate its probabilities. Results "
            "are ordinary nodes and are saved with the scene.</p>"
            "<p><b>For research, not for clinical use.</b></p>");
}

QString qSlicerRaterConsensusModule::acknowledgementText() const
{
  return tr("Ordinal training on consensus levels and multi-rater calibration follow \"Multi-Rater Calibrated Segmentation "
            "Models\" (arXiv 2605.02437). STAPLE: Warfield, Zou and Wells 2004. SIMPLE: Langerak et al. 2010. SVLS: Islam and "
            "Glocker 2021.");
}

QStringList qSlicerRaterConsensusModule::contributors() const
{
  return { QStringLiteral("The RaterConsensus developers") };
}

QIcon qSlicerRaterConsensusModule::icon() const
{
  return QIcon(":/Icons/RaterConsensus.png");
}

QStringList qSlicerRaterConsensusModule::categories() const
{
  return { QStringLiteral("Segmentation") };
}

QStringList qSlicerRaterConsensusModule::dependencies() const
{
  return { QStringLiteral("Colors"), QStringLiteral("Markups"), QStringLiteral("Segmentations") };
}

QStringList qSlicerRaterConsensusModule::associatedNodeTypes() const
{
  return { QStringLiteral("vtkMRMLRaterConsensusNode") };
}

qSlicerAbstractModuleRepresentation* qSlicerRaterConsensusModule::createWidgetRepresentation()
{
  return new qSlicerRaterConsensusModuleWidget;
}

vtkMRMLAbstractLogic* qSlicerRaterConsensusModule::createLogic()
{
  return vtkSlicerRaterConsensusLogic::New();
}

void qSlicerRaterConsensusModule::setup()
{
  this->Superclass::setup();
#ifdef Slicer_USE_PYTHONQT
  qSlicerApplication* const application = qSlicerApplication::application();
  if (application && !qSlicerCoreApplication::testAttribute(qSlicerCoreApplication::AA_DisablePython))
  {
    connect(application, &qSlicerApplication::startupCompleted, this, [application] {
      QFile script(":/Scripts/RegisterSampleData.py");
      // By name, because the class's header needs those of Python and PythonQt. An object's class begins with QObject: its
      // meta object compiler wants that.
      QObject* const python = reinterpret_cast<QObject*>(application->corePythonManager());
      if (python && script.open(QIODevice::ReadOnly))
      {
        QMetaObject::invokeMethod(python, "executeString", Q_ARG(QString, QString::fromUtf8(script.readAll())));
      }
    });
  }
#endif
}
