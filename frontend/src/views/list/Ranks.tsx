/** Above the list: a note that not all ranks of the run have been read. */

import { RanksToRead } from '../../components/RanksToRead';
import { gathering, gatherSelected, ranksKnown, ranksPending } from '../../state/ranks';

export const Ranks = () => (
  <RanksToRead known={ranksKnown.value} pending={ranksPending.value} reading={gathering.value} onRead={gatherSelected} />
);
