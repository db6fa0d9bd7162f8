// SPDX-License-Identifier: Apache-2.0
#include "qRcnAbout.h"

#include <QLabel>
#include <QLayout>

#include <itkVersion.h>

#include "rcn/rcn.h"

qRcnAbout::qRcnAbout(QWidget* parent) : qRcnSheet("about", tr("About Rater Consensus"), parent), Label(new QLabel(this))
{
  this->Label->setObjectName("aboutText");
  this->layout()->addWidget(this->Label);
  this->setGraphics(QString());
}

void qRcnAbout::setGraphics(const QString& graphics)
{
  const QString libraries = tr("Qt %1, ITK %2").arg(qVersion(), itk::Version::GetITKVersion());
  this->Label->setText(tr("<h2>Rater Consensus %1</h2>"
                          "<p>Learning from experts who disagree:<br>agreement, consensus, calibrated probabilities.</p>"
                          "<p><b>For research, not for clinical use.</b></p>"
                          "<p>%2<br>3-D view: %3</p>"
                          "<p>Apache License 2.0</p>")
      .arg(QStringLiteral(RCN_VERSION), libraries, graphics.isEmpty() ? tr("not in this build") : graphics));
}

QString qRcnAbout::text() const
{
  return this->Label->text();
}
