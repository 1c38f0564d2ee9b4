import type { Mutant } from '../mutant.ts'

const FETCH = 'frontend/cli/fetch-model.ts'
const FETCH_TESTS = ['tests/cli/fetch-model.test.ts']
const STOP = 'frontend/cli/stop.ts'

/** What a first hour uses: serve, dev, stop. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'mistakes of the configuration are told one start at a time',
    file: 'frontend/config/build-settings.ts',
    find: "inOrder(problems, entries).join('; ')",
    replace: 'inOrder(problems, entries)[0]!',
    title: 'all of them are told at once',
    tests: ['tests/config/settings.test.ts'],
  },
  {
    name: 'mistakes of the configuration are told in the order of the keys',
    file: 'frontend/config/build-settings.ts',
    find: 'said.indexOf(a.key) - said.indexOf(b.key)',
    replace: '0',
    title: 'all of them are told at once',
    tests: ['tests/config/settings.test.ts'],
  },
  {
    name: 'workers that end with the server are told as failed',
    file: 'frontend/models/startup-models.ts',
    find: 'if (!this.#lifecycle.stopping)',
    replace: 'if (this.#lifecycle !== undefined)',
    title: 'a port that is taken',
    tests: ['tests/e2e/lifecycle.test.ts'],
  },
  {
    name: 'a project of a clone depends on a version that npm may not have',
    file: 'frontend/cli/init/write-project.ts',
    find: 'isInstalled ? installedFrom(root) : root',
    replace: 'installedFrom(root)',
    tests: ['tests/cli/init.test.ts'],
  },
  {
    name: 'a project of a packed package depends on a version that npm may not have',
    file: 'frontend/cli/init/write-project.ts',
    find: 'path !== undefined && isThere(path) ? path : undefined',
    replace: 'undefined',
    tests: ['tests/cli/init.test.ts'],
  },
  {
    name: 'an archive finds the packages of the server only',
    file: 'model-archiver/package-root.ts',
    find: 'realpathSync(link) === realpathSync(root) ? [modules]',
    replace: 'realpathSync(link) === realpathSync(root) ? []',
    tests: ['tests/model-archiver/prepare.test.ts'],
  },
  {
    name: 'the hash of a file on this machine is not checked',
    file: FETCH,
    find: '  if (options.sha256 !== undefined) await checkHash(place.path, options.sha256)\n',
    replace: '',
    tests: FETCH_TESTS,
  },
  {
    name: 'the hash that the hub tells is not used',
    file: FETCH,
    find: 'const wanted = sha256 ?? file.sha256',
    replace: 'const wanted = sha256',
    tests: FETCH_TESTS,
  },
  {
    name: 'flags for Hugging Face are ignored elsewhere',
    file: 'frontend/cli/serve-model.ts',
    find: 'if (file !== undefined || revision !== undefined)\n',
    replace: 'if (file !== undefined && revision !== undefined)\n',
    title: 'is refused for what is not on Hugging Face',
    tests: ['tests/cli/serve-model.test.ts'],
  },
  {
    name: 'a removed file is no change for dev',
    file: 'frontend/cli/dev/file-stamps.ts',
    find: 'return [...written, ...[...before.keys()].filter((path) => !after.has(path))]',
    replace: 'return written',
    title: 'written, made or removed',
    tests: ['tests/cli/dev-files.test.ts'],
  },
  {
    name: 'a stop elsewhere ends a server of serve',
    file: STOP,
    find: 'servers.filter(({ inTerminal }) => inTerminal !== true)',
    replace: 'servers',
    title: 'a stop in another folder leaves it alone',
    tests: ['tests/cli/serve-model.test.ts'],
  },
  {
    name: 'a stop with a file ends a server with another file',
    file: STOP,
    find: 'here.filter((server) => server.config === undefined)',
    replace: 'here',
    title: 'leaves a server of its folder alone',
    tests: ['tests/cli/servers.test.ts'],
  },
  {
    name: 'a project may have a name that npm refuses',
    file: 'frontend/cli/init/write-project.ts',
    find: "    .replace(/^[._-]+/, '')\n",
    replace: '',
    tests: ['tests/cli/init.test.ts'],
  },
  {
    name: 'a project has no .gitignore',
    file: 'frontend/cli/init/write-project.ts',
    find: 'file === GITIGNORE.inTemplate ? GITIGNORE.inProject : file',
    replace: 'file',
    tests: ['tests/cli/init.test.ts'],
  },
]
