import type { PreparedModel } from '../../model-archiver/prepare.ts'
import type { ModelSettings } from '../models/model-settings.ts'

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
