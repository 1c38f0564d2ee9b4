import { isObject } from '../../../common/json.ts'
import type { Parameters } from '../../../common/tensors/tensor.ts'
import type { ModelStatus } from '../../models/operations.ts'

/** One input or output in the metadata of a model. */
export interface TensorMetadata {
  name: string
  datatype: string
  /** -1 for a dimension of any size. */
  shape: number[]
  parameters?: Parameters
}

/**
 * How tensors reach a handler without tensor methods: `parts` as named parts of the request, `json` as the
 * whole request in JSON in one part `body` (for handlers that were written for TorchServe's kservev2
 * envelope).
 */
export type Mapping = 'parts' | 'json'

/**
 * Metadata and settings of a model for this protocol: section `openInference` of model-config.yaml, or
 * model-settings.json.
 */
export interface OpenInferenceSettings {
  platform: string
  /** Versions to report; empty: the registered versions. */
  versions: string[]
  inputs: TensorMetadata[]
  outputs: TensorMetadata[]
  /** Undefined: not configured. */
  mapping: Mapping | undefined
}

/** Invalid metadata are ignored, because the model itself works without them. */
export function openInferenceSettings({
  config,
  envelope,
}: Pick<ModelStatus, 'config' | 'envelope'>): OpenInferenceSettings {
  const section = isObject(config['openInference']) ? config['openInference'] : {}
  const { platform, versions, mapping } = section
  return {
    platform: typeof platform === 'string' ? platform : '',
    versions: Array.isArray(versions) ? versions.map(String) : [],
    inputs: tensorList(section['inputs']),
    outputs: tensorList(section['outputs']),
    mapping:
      mapping === 'json' || mapping === 'parts'
        ? mapping
        : envelope?.startsWith('kserve')
          ? 'json'
          : undefined,
  }
}

function tensorList(value: unknown): TensorMetadata[] {
  if (!Array.isArray(value)) return []
  return value.filter(isObject).flatMap(({ name, datatype, shape, parameters }) => {
    if (typeof name !== 'string' || typeof datatype !== 'string') return []
    const sizes = Array.isArray(shape) && shape.every(Number.isSafeInteger) ? (shape as number[]) : [-1]
    return [{ name, datatype, shape: sizes, ...(isObject(parameters) && { parameters }) }]
  })
}
