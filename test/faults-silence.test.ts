import { testMatrix } from './support/fault-matrix.ts';
import { SILENCES } from './support/redis-faults.ts';

testMatrix('when Redis or the link to it is silent', SILENCES);
