import { testMatrix } from './support/fault-matrix.ts';
import { PROMOTIONS, RESTARTS } from './support/redis-faults.ts';

testMatrix('when Redis is restarted', RESTARTS);
testMatrix('when another Redis is promoted', PROMOTIONS);
