import type { Output } from './output.ts'
import type { PreparedModel } from '../../model-archiver/prepare.ts'
import type { ModelSettings } from '../models/model-settings.ts'

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
export function archiveDifferences(prepared: PreparedModel, own: ModelSettings): string[] {
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
