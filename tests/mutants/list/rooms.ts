import type { Mutant } from '../mutant.ts'

const REGISTRY = 'frontend/models/registry.ts'
const JOB_QUEUE = 'frontend/jobs/job-queue.ts'
const SEQUENCE_QUEUE = 'frontend/jobs/sequence-queue.ts'
const GUARD = 'model-archiver/entry-guard.ts'
const BUDGET = 'model-archiver/unpack-budget.ts'
const NAMES = 'model-archiver/entry-names.ts'
const STORE = 'model-archiver/store.ts'
const WORKSPACE = 'model-archiver/workspace.ts'
const OWNER = 'model-archiver/owner-file.ts'
const COLLECT = 'frontend/config/collect-entries.ts'
const SETTINGS = ['tests/config/settings.test.ts']
const LAST = 'frontend/config/last-snapshot.ts'
const LOAD = 'frontend/config/load-settings.ts'
const SOURCE = 'frontend/config/model-source.ts'

const UNPACK = ['tests/model-archiver/entry-guard.test.ts']
const NAMED = ['tests/model-archiver/entry-names.test.ts']
const LOCATE = ['tests/model-archiver/locate.test.ts']
const LOADED = ['tests/config/load-settings.test.ts']
const OVER_A_SNAPSHOT = ['tests/config/model-source.test.ts']
const QUEUED = ['tests/jobs/job-queue.test.ts']
const REGISTERED = ['tests/models/registry.test.ts']
const SEQUENCES = ['tests/jobs/sequence-queue.test.ts']
const SWEPT = ['tests/model-archiver/owner-file.test.ts']

/** Versions and queues. */
const MODEL_MUTANTS: Mutant[] = [
  {
    name: 'a discarded default version leaves its name without one',
    file: REGISTRY,
    find: '    if (next !== undefined && versions.default === model.version) versions.default = next\n',
    replace: '',
    tests: REGISTERED,
  },
  {
    name: 'the default version can be removed beside others',
    file: REGISTRY,
    find: 'versions.default === model.version)\n      throw',
    replace: 'versions.default === "")\n      throw',
    tests: REGISTERED,
  },
  {
    name: 'discarding a version takes out the one in its place',
    file: REGISTRY,
    find: 'if (versions?.byVersion.get(model.version) !== model) return',
    replace: 'if (versions === undefined) return',
    tests: REGISTERED,
  },
  {
    name: 'the newest version becomes the default',
    file: REGISTRY,
    find: '      versions.byVersion.set(model.version, model)\n      settle(versions)\n    }\n  }\n',
    replace:
      '      versions.byVersion.set(model.version, model)\n      versions.default = model.version\n    }\n  }\n',
    tests: REGISTERED,
  },
  {
    name: 'a queue holds one job more than its size',
    file: JOB_QUEUE,
    find: 'if (this.remainingCapacity <= 0) throw',
    replace: 'if (this.remainingCapacity < 0) throw',
    tests: QUEUED,
  },
  {
    name: 'a batch takes a job that goes alone along',
    file: JOB_QUEUE,
    find: 'if (goesAlone(job) || !bytes.take(job.request)',
    replace: 'if (!bytes.take(job.request)',
    tests: QUEUED,
  },
  {
    name: 'a job that comes overtakes those that wait',
    file: JOB_QUEUE,
    find: 'if (this.#options.batchSize === 1 && this.#jobs.size === 0 && this.#runAtOnce(job)) return',
    replace: 'if (this.#options.batchSize === 1 && this.#runAtOnce(job)) return',
    tests: QUEUED,
  },
  {
    name: 'a job that ended while it waited starts',
    file: JOB_QUEUE,
    find: '  abandon(job: Job): void {\n    this.#jobs.delete(job)\n',
    replace: '  abandon(_job: Job): void {\n',
    tests: QUEUED,
  },
  {
    name: 'a worker without free slots gets jobs',
    file: 'frontend/jobs/scheduler.ts',
    find: 'let slots = 0\n',
    replace: 'let slots = -1\n',
    tests: QUEUED,
  },
  {
    name: 'the fullest worker gets the job',
    file: 'frontend/jobs/scheduler.ts',
    find: 'if (free > slots) {',
    replace: 'if (free > 0) {',
    tests: QUEUED,
  },
  {
    name: 'a batch does not wait for more',
    file: JOB_QUEUE,
    find: 'this.#options.maxBatchDelay - performance.now()',
    replace: '0 - performance.now()',
    tests: QUEUED,
  },
  {
    name: 'a sequence that closes takes more jobs',
    file: SEQUENCE_QUEUE,
    find: 'return !sequence.closing && sequence.waiting.size < this.#options.maxWaiting',
    replace: 'return sequence.waiting.size < this.#options.maxWaiting',
    tests: SEQUENCES,
  },
  {
    name: 'a sequence goes on at another worker when its own has died',
    file: SEQUENCE_QUEUE,
    find: 'if (sequence.started) this.#end(sequence, error)\n      else this',
    replace: 'this',
    tests: SEQUENCES,
  },
  {
    name: 'there is one sequence more than maxNumSequence',
    file: SEQUENCE_QUEUE,
    find: 'return this.#sequences.size < this.#options.maxSequences',
    replace: 'return this.#sequences.size <= this.#options.maxSequences',
    tests: SEQUENCES,
  },
  {
    name: 'an idle sequence lives on while it has a job',
    file: SEQUENCE_QUEUE,
    find: '    clearTimeout(sequence.idleTimer)\n    sequence.closing ||= asked.last\n',
    replace: '    sequence.closing ||= asked.last\n',
    tests: SEQUENCES,
  },
]

/** Archives, stores and the folders of a server. */
const ARCHIVE_MUTANTS: Mutant[] = [
  {
    name: 'a link to the server’s folder opens all of it to workers',
    file: 'frontend/workers/sandbox/places.ts',
    find: '...copy, ...sandbox.write.map(realOr)]',
    replace: '...copy, ...sandbox.write]',
    tests: ['tests/security/folders-to-write.test.ts'],
  },
  {
    name: 'a folder whose mode keeps workers from writing is not named',
    file: 'frontend/workers/sandbox/write-problems.ts',
    find: 'constants.W_OK | (stats',
    replace: 'constants.X_OK | (stats',
    tests: ['tests/security/folders-to-write.test.ts'],
  },
  {
    name: 'an archive may hold one file too many',
    file: BUDGET,
    find: 'if (files > maxFiles)',
    replace: 'if (files > maxFiles + 1)',
    tests: UNPACK,
  },
  {
    name: 'the sizes of an archive are not added up',
    file: BUDGET,
    find: 'this.#declared += bytes',
    replace: 'this.#declared = bytes',
    tests: UNPACK,
  },
  {
    name: 'names that differ by letter case pass',
    file: GUARD,
    find: "path.normalize('NFC').toLowerCase()",
    replace: "path.normalize('NFC')",
    tests: UNPACK,
  },
  {
    name: 'names that differ by Unicode form pass',
    file: GUARD,
    find: "path.normalize('NFC').toLowerCase()",
    replace: 'path.toLowerCase()',
    tests: UNPACK,
  },
  {
    name: 'a file takes the place of a folder',
    file: GUARD,
    find: 'else if (earlier.file || file) throw',
    replace: 'else if (earlier.file && file) throw',
    tests: UNPACK,
  },
  {
    name: 'a name may lead out of the archive',
    file: NAMES,
    find: "  if (part === '..') return 'the name leads out of the archive (..)'\n",
    replace: '',
    tests: NAMED,
  },
  {
    name: 'a name may have a backslash',
    file: NAMES,
    find: "  if (name.includes('\\\\')) return 'the name has a backslash'\n",
    replace: '',
    tests: NAMED,
  },
  {
    name: 'a name may end in a dot',
    file: NAMES,
    find: '/[. ]$/.test(part)',
    replace: '/[ ]$/.test(part)',
    tests: NAMED,
  },
  {
    name: 'a part of a name is as long as characters say',
    file: NAMES,
    find: 'Buffer.byteLength(part) > MAX_PART_BYTES',
    replace: 'part.length > MAX_PART_BYTES',
    tests: NAMED,
  },
  {
    name: 'the source of an archive is loaded beside it',
    file: STORE,
    find: 'if (first === undefined) models.set(stem, { location, path })',
    replace: 'if (first === undefined || location === stem) models.set(location, { location, path })',
    tests: LOCATE,
  },
  {
    name: 'hidden entries of a store count',
    file: STORE,
    find: "(await readdir(modelStore)).filter((name) => !name.startsWith('.'))",
    replace: 'await readdir(modelStore)',
    tests: LOCATE,
  },
  {
    name: 'a folder of another user holds the unpacked models',
    file: WORKSPACE,
    find: '  if (stats.isDirectory() && own) return\n',
    replace: '  if (own || stats.isDirectory()) return\n',
    tests: ['tests/model-archiver/workspace.test.ts'],
  },
  {
    name: 'a workspace that could not be laid out stays',
    file: WORKSPACE,
    find: '  } catch (error) {\n    await dispose()\n    throw error\n',
    replace: '  } catch (error) {\n    throw error\n',
    tests: ['tests/model-archiver/workspace.test.ts'],
  },
  {
    name: 'the folder of a server that runs is swept',
    file: OWNER,
    find: "  return !runs({ place, pid: Number(pid), started: started ?? '' })",
    replace: '  return true',
    tests: SWEPT,
  },
  {
    name: 'the folder of a process in another container is swept',
    file: OWNER,
    find: 'if (place !== self.place || ',
    replace: 'if (',
    tests: SWEPT,
  },
  {
    name: 'a process that got the number of a killed server keeps its folders',
    file: OWNER,
    find: "if (started !== '') return startTime(pid) === started",
    replace: "if (started !== '') return startTime(pid) !== undefined",
    tests: SWEPT,
  },
  {
    name: 'folders that others may write to are swept',
    file: OWNER,
    find: ' && (stats.mode & 0o022) === 0',
    replace: '',
    tests: SWEPT,
  },
]

/** Which of the settings counts. */
const CONFIG_MUTANTS: Mutant[] = [
  {
    name: 'the flag --ts-config comes before TS_CONFIG_FILE',
    file: LOAD,
    find: "if (fromEnv !== undefined && fromEnv !== '') return",
    replace: "if (tsConfig === undefined && fromEnv !== undefined && fromEnv !== '') return",
    tests: LOADED,
  },
  {
    name: 'a start that names its file reads the newest snapshot',
    file: LOAD,
    find: ' || namedFile(flags, env) !== undefined) return undefined',
    replace: ') return undefined',
    tests: OVER_A_SNAPSHOT,
  },
  {
    name: 'the flag --ncs reads the snapshot',
    file: LOAD,
    find: 'if (flags.configSnapshots === false || ',
    replace: 'if (',
    tests: OVER_A_SNAPSHOT,
  },
  {
    name: 'the oldest snapshot is read',
    file: LAST,
    find: '(await listSnapshots(folder)).at(-1)',
    replace: '(await listSnapshots(folder)).at(0)',
    tests: LOADED,
  },
  {
    name: 'settings of a snapshot come before config.properties',
    file: LOAD,
    find: 'file === undefined && last !== undefined ?',
    replace: 'last !== undefined ?',
    tests: LOADED,
  },
  {
    name: 'a snapshot opens a server without a file',
    file: LAST,
    find: 'UNSAFE.get(name) === text.toLowerCase()',
    replace: 'false',
    tests: OVER_A_SNAPSHOT,
  },
  {
    name: 'a snapshot comes before --models',
    file: SOURCE,
    find: '(byFlag || isChanged(load, last))',
    replace: 'isChanged(load, last)',
    tests: OVER_A_SNAPSHOT,
  },
  {
    name: 'a snapshot comes before a changed load_models',
    file: SOURCE,
    find: '(byFlag || isChanged(load, last))',
    replace: 'byFlag',
    tests: OVER_A_SNAPSHOT,
  },
  {
    name: 'a named config file may be missing',
    file: LOAD,
    find: "if (named === undefined && ['ENOENT'",
    replace: "if (['ENOENT'",
    tests: LOADED,
  },
  {
    name: 'the file comes before the flags',
    file: COLLECT,
    find: '  sources.flags.forEach(add)\n',
    replace: '  sources.flags.filter(({ name }) => !entries.has(name)).forEach(add)\n',
    tests: SETTINGS,
  },
  {
    name: 'variables count without enable_envvars_config',
    file: COLLECT,
    find: '  if (!isTrue(entries, KEYS.enableEnvvarsConfig.name)) return\n',
    replace: '',
    tests: SETTINGS,
  },
  {
    name: 'allowed_urls comes from the environment unasked',
    file: COLLECT,
    find: 'spec.name === KEYS.allowedUrls.name && !isTrue(entries, KEYS.useEnvAllowedUrls.name)',
    replace: 'false as boolean',
    tests: SETTINGS,
  },
  {
    name: 'MLServer’s settings come before the file',
    file: COLLECT,
    find: '  for (const entry of sources.file) if (isKnown(entry, warnings)) add(entry)\n',
    replace:
      '  for (const entry of sources.file) if (isKnown(entry, warnings)) add(entry)\n  sources.mlserver?.forEach(add)\n',
    tests: [...SETTINGS, 'tests/config/mlserver-settings.test.ts'],
  },
  {
    name: 'a key that is misspelt is ignored',
    file: COLLECT,
    find: 'if (meant !== undefined) {',
    replace: 'if (meant === "") {',
    tests: SETTINGS,
  },
]

export const MUTANTS: readonly Mutant[] = [...MODEL_MUTANTS, ...ARCHIVE_MUTANTS, ...CONFIG_MUTANTS]
