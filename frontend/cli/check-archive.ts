import { existsSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { prepareModel, type PreparedModel } from '../../model-archiver/prepare.ts'
import { missingPackages } from '../../model-archiver/packages.ts'
import { inside } from '../../model-archiver/handler-entry.ts'
import { ServeError } from '../../common/errors.ts'
import { loadSettings } from '../config/load-settings.ts'
import type { Settings } from '../config/settings.ts'
import { settingsOf } from '../models/build-model.ts'
import { checkConfiguredPin, unpackLimits } from '../models/located-model.ts'
import type { ModelSettings } from '../models/model-settings.ts'
import { findGpus } from '../workers/gpus.ts'
import { describeFailure, tellFailure } from './describe-failure.ts'
import { checkPython } from './check-python.ts'
import type { CliFlags } from './flags.ts'
import type { Output } from './output.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { removeAtExit } from '../../model-archiver/workspace.ts'

/**
 * Reports what a server with these settings would run for an archive or a model's folder, what would differ
 * from TorchServe, and what this machine lacks. Only unpacks and reads: starts, installs and downloads
 * nothing.
 * @returns the exit status: 0 it runs here, 1 something is missing here or the settings cannot be used, 2 the
 *   archive cannot be used
 */
export async function checkArchive(file: string, flags: CliFlags, output: Output): Promise<number> {
  const { tempDir, dispose } = await checkFolder()
  const report = new ArchiveReport()
  try {
    const loaded = await loadSettings(flags)
    const settings = { ...loaded.settings, tempDir }
    await checkUnpacked(find(file, settings), settings, report, output)
  } catch (error) {
    return tellFailure(error, output)
  } finally {
    await dispose()
  }
  report.print(output)
  return report.status
}

/** A path, or a name in the model store. @throws ServeError MODEL_NOT_FOUND */
function find(file: string, { modelStore }: Settings): string {
  const places = [resolve(file), ...(modelStore === undefined ? [] : [join(modelStore, basename(file))])]
  const found = places.find((place) => existsSync(place))
  if (found === undefined)
    throw new ServeError('MODEL_NOT_FOUND', `--check-archive: there is no ${places.join(' and no ')}`)
  return found
}

/** Fills the report for an archive or a folder; what it is called goes to the output. */
export async function checkUnpacked(
  path: string,
  settings: Settings,
  report: ArchiveReport,
  output: Output,
): Promise<void> {
  let prepared: PreparedModel
  try {
    prepared = await prepareModel(path, {
      tempDir: settings.tempDir,
      defaultHandler: settings.defaultServiceHandler,
      limits: unpackLimits(settings),
    })
  } catch (error) {
    report.broken.push(describeFailure(error))
    return
  }
  const { name, version, runtime, manifest } = prepared
  output.out(
    `Model ${name}, version ${version}, runtime ${runtime}, handler ${manifest.model.handler ?? 'none'}`,
  )
  if (prepared.archive !== undefined) output.out(`SHA-256 ${prepared.archive.sha256}`)
  checkFiles(prepared, report)
  await checkSettings(path, prepared, settings, report)
  if (runtime === 'node') await checkNode(prepared, report)
  else if (runtime === 'LSP') report.broken.push('The runtime LSP (C++ workers) is not supported.')
  else await checkPython(prepared, settings, report)
}

/** Every file that the manifest names must exist. */
function checkFiles({ manifest: { model }, modelDir }: PreparedModel, report: ArchiveReport): void {
  for (const key of ['modelFile', 'serializedFile', 'requirementsFile', 'sourceVocab'] as const) {
    const file = model[key]
    if (file === undefined) continue
    const path = inside(modelDir, file)
    if (path === undefined || !existsSync(path)) report.broken.push(`${key} ${file} is not in the archive.`)
  }
}

async function checkSettings(
  path: string,
  prepared: PreparedModel,
  settings: Settings,
  report: ArchiveReport,
): Promise<void> {
  const gpus = await findGpus(settings.numberOfGpu)
  const warn = (warning: string): void => void report.differs.push(`${warning}.`)
  const request = { url: path, synchronous: false }
  const located = { prepared, name: prepared.name }
  try {
    checkConfiguredPin(settings, located)
  } catch (error) {
    report.broken.push(describeFailure(error))
  }
  try {
    const own = settingsOf(request, located, true, { settings, warn, gpuCount: gpus.list.length })
    report.runs.push(workersLine(own, prepared))
    report.differs.push(...archiveDifferences(prepared, own))
  } catch (error) {
    report.missing.push(describeFailure(error))
  }
}

function workersLine(own: ModelSettings, { modelConfig }: PreparedModel): string {
  const { minWorkers, batchSize, maxBatchDelay, deviceType, responseTimeout, startupTimeout } = own
  const noGpu = modelConfig['deviceType'] === 'gpu' && deviceType === 'cpu'
  const device = noGpu ? 'cpu (deviceType is gpu, but no GPU was found)' : deviceType
  const ranks = own.parallelLevel > 0 ? ` of ${own.parallelLevel} ranks (${own.parallelType})` : ''
  const modes = [
    own.continuousBatching && 'continuous batching',
    own.sequenceBatching && 'sequence batching',
    own.asyncCommunication && 'asynchronous',
    own.useVenv && 'a virtual environment of its own',
  ].filter((mode) => mode !== false)
  return (
    `${minWorkers} ${minWorkers === 1 ? 'worker' : 'workers'}${ranks} on ${device} at start, batchSize ${batchSize}, ` +
    `maxBatchDelay ${maxBatchDelay} ms, responseTimeout ${responseTimeout} s, startupTimeout ${startupTimeout} s` +
    (modes.length > 0 ? `, ${modes.join(', ')}` : '')
  )
}

async function checkNode(
  { handlerPath, handlerProblem }: PreparedModel,
  report: ArchiveReport,
): Promise<void> {
  if (handlerProblem !== undefined) report.broken.push(handlerProblem.message)
  if (handlerPath === undefined) return
  const missing = await missingPackages(handlerPath)
  if (missing.length > 0)
    report.missing.push(
      `The handler imports ${missing.join(', ')}. Where torchserve-ts is installed: npm install ${missing.join(' ')}`,
    )
  report.runs.push(`Node.js ${process.versions.node}`)
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** A temporary folder for a command that checks archives; it is also gone when a signal ends the command. */
export interface CheckFolder {
  readonly tempDir: string
  dispose(): Promise<void>
}

export async function checkFolder(): Promise<CheckFolder> {
  for (const signal of SIGNALS) process.on(signal, exitFor)
  const tempDir = await mkdtemp(join(tmpdir(), 'torchserve-ts-check-'))
  const removed = removeAtExit(tempDir)
  const dispose = async (): Promise<void> => {
    await rm(tempDir, { recursive: true, force: true })
    removed()
    for (const signal of SIGNALS) process.off(signal, exitFor)
  }
  return { tempDir, dispose }
}

/** Ends with the status that a shell shows for that signal. */
function exitFor(signal: NodeJS.Signals): void {
  process.exit(128 + constants.signals[signal])
}

/** The result of `--check-archive`. */
export class ArchiveReport {
  /** What a server would start. */
  readonly runs: string[] = []
  /** Differences from TorchServe. */
  readonly differs: string[] = []
  /** Requirements that this machine lacks. */
  readonly missing: string[] = []
  /** Errors that prevent its use on any machine. */
  readonly broken: string[] = []

  /** 0: runs here; 1: something is missing here; 2: cannot be used. */
  get status(): 0 | 1 | 2 {
    if (this.broken.length > 0) return 2
    return this.missing.length > 0 ? 1 : 0
  }

  print(output: Output): void {
    section(output, 'Runs', this.runs)
    section(output, 'Differs from TorchServe', this.differs)
    section(output, 'Missing here', this.missing)
    section(output, 'Cannot be used', this.broken)
    const verdict = [
      'The archive runs here.',
      'The archive does not run here yet.',
      'The archive cannot be used.',
    ]
    output.out(verdict[this.status]!)
  }
}

function section(output: Output, title: string, lines: readonly string[]): void {
  if (lines.length === 0) return
  output.out(`${title}:`)
  for (const line of lines) output.out(`  - ${line}`)
}

/** Deliberate differences from TorchServe that affect this archive (docs/torchserve-compatibility.md). */
function archiveDifferences(prepared: PreparedModel, own: ModelSettings): string[] {
  const { modelConfig: config } = prepared
  const found: (string | false)[] = [
    'minWorkers' in config &&
      !('maxWorkers' in config) &&
      `minWorkers without maxWorkers sets both to ${own.minWorkers}; TorchServe ignores it.`,
    config['maxBatchDelay'] === 0 &&
      'maxBatchDelay 0 forms batches without waiting; TorchServe waits for 100 ms.',
    ['minWorkers', 'responseTimeout', 'startupTimeout'].some((key) => Object.hasOwn(config, key)) &&
      'Workers and timeouts of a register call override model-config.yaml; in TorchServe the file overrides the call.',
    Object.keys(config).length > 0 &&
      !('responseTimeout' in config) &&
      own.responseTimeout !== 120 &&
      `responseTimeout is ${own.responseTimeout} s, from default_response_timeout; TorchServe uses 120 s for a model with a model-config.yaml.`,
    own.asyncCommunication &&
      'Asynchronous requests have time limits, and an error or a crash of the worker fails only its own requests.',
    own.parallelLevel > 0 && own.deviceType === 'cpu' && 'The ranks share the CPUs of this machine.',
  ]
  return found.filter((line) => line !== false)
}
