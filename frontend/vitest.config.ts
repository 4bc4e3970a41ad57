import { defineConfig } from 'vitest/config';

const FUNCTIONS = 'src/base/**/*.test.ts';

/** Pure functions need neither a page nor a process to each file, which take more time than their tests do. */
export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  test: {
    pool: 'threads', // they start sooner than processes
    restoreMocks: true,
    unstubGlobals: true,
    projects: [
      { extends: true, test: { name: 'functions', environment: 'node', include: [FUNCTIONS], isolate: false } },
      {
        extends: true,
        test: {
          name: 'page',
          environment: 'happy-dom',
          setupFiles: ['src/testing/setup.ts'],
          testTimeout: 240_000, // four waits of a busy machine, each as long as `setup.ts` lets it be
          include: ['src/**/*.test.{ts,tsx}'],
          exclude: [FUNCTIONS],
        },
      },
    ],
  },
});
