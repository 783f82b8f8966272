// Definitions of the four op interfaces.
#include "shoal/Interfaces/Differentiable.h"
#include "shoal/Interfaces/LinalgLowerable.h"
#include "shoal/Interfaces/Reference.h"
#include "shoal/Interfaces/ShardingRule.h"

#include "shoal/Dialect/Interfaces/DifferentiableOpInterface.cpp.inc"
#include "shoal/Dialect/Interfaces/LinalgLowerableOpInterface.cpp.inc"
#include "shoal/Dialect/Interfaces/ReferenceOpInterface.cpp.inc"
#include "shoal/Dialect/Interfaces/ShardingRuleOpInterface.cpp.inc"
