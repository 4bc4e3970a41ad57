/** Set-up of the tests: a machine whose cores are busy takes its time, which says nothing of the page. */

import { configure } from '@testing-library/preact';
import { vi } from 'vitest';

const PATIENCE_MS = 30_000;

configure({ asyncUtilTimeout: PATIENCE_MS });

const { waitFor } = vi;
vi.waitFor = (check, options = PATIENCE_MS) => waitFor(check, options);
