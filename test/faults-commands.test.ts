import { testMatrix } from './support/fault-matrix.ts';
import { APPENDS, COMMANDS, TRIMS } from './support/redis-faults.ts';

testMatrix('when operators do things to Redis', COMMANDS);
testMatrix('when commits are trimmed', TRIMS);
testMatrix('when appends and clocks go wrong', APPENDS);
