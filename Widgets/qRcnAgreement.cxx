#include "qRcnAgreement.h"

class qRcnAgreementPrivate
{
public:
  qRcnAgreement::Measure Measure = qRcnAgreement::Dice;
};

qRcnAgreement::qRcnAgreement(QWidget* parent) : QWidget(parent), d(new qRcnAgreementPrivate) {}
qRcnAgreement::~qRcnAgreement() = default;
void qRcnAgreement::setAgreement(const rcn::AgreementReport&, const QStringList&) {}
void qRcnAgreement::clear() {}
qRcnAgreement::Measure qRcnAgreement::measure() const { return this->d->Measure; }
QString qRcnAgreement::csv() const { return {}; }
void qRcnAgreement::setMeasure(Measure measure) { this->d->Measure = measure; }
