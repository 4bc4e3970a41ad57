/** Set-up of the tests: a busy machine is slow, which says nothing about the page. */

import { configure } from '@testing-library/preact';
import { afterEach, beforeEach, vi } from 'vitest';
import { closePage } from './page';

const PATIENCE_MS = 60_000;

configure({ asyncUtilTimeout: PATIENCE_MS });

const { waitFor } = vi;
vi.waitFor = (check, options = PATIENCE_MS) => waitFor(check, options);

/** A page is never idle: it would fetch all views in each test. */
beforeEach(() => void vi.stubGlobal('requestIdleCallback', () => 0));

// An answer, or the page's next look, that comes after a file's last test would find a window that is gone.
afterEach(closePage);
