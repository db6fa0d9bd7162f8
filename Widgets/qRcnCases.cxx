#include "qRcnCases.h"

class qRcnCasesPrivate
{
public:
  QString Current;
};

qRcnCases::qRcnCases(QWidget* parent) : QWidget(parent), d(new qRcnCasesPrivate) {}
qRcnCases::~qRcnCases() = default;
void qRcnCases::setCases(const std::vector<rcn::Case>&, const QStringList&) {}
void qRcnCases::setStatus(const QString&, Status, const QString&) {}
void qRcnCases::setAgreement(const QString&, double) {}
QString qRcnCases::currentCase() const { return this->d->Current; }
qRcnCases::Status qRcnCases::status(const QString&) const { return NotRead; }
QStringList qRcnCases::shownCases() const { return {}; }
void qRcnCases::setCurrentCase(const QString& id) { this->d->Current = id; }
