package conformance

var codecCatalog, enumeratorCatalog, engineCatalog, metricsCatalog []Case
