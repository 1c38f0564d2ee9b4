import { isObject } from '../../../common/json.ts'
import type { Parameters } from '../../../common/tensors/tensor.ts'
import type { ModelStatus } from '../../models/operations.ts'

/** One input or output as the metadata of a model tell it. */
export interface TensorMetadata {
  name: string
  datatype: string
  /** -1 for a dimension of any size. */
  shape: number[]
  parameters?: Parameters
}

/**
 * How tensors come to a handler that does not take them itself: `parts` as named parts of the request, `json`
 * as the whole request in JSON in one part `body` (what TorchServe's kservev2 envelope and handlers written
 * for it expect).
 */
export type Mapping = 'parts' | 'json'

/**
 * What a model says about itself for this protocol: section `openInference` of model-config.yaml, or
 * model-settings.json.
 */
export interface OpenInferenceSettings {
  platform: string
  /** As the model names them; empty: the versions that are registered. */
  versions: string[]
  inputs: TensorMetadata[]
  outputs: TensorMetadata[]
  /** Undefined: nobody said it. */
  mapping: Mapping | undefined
}

/** What is malformed counts as absent: it is metadata, and the model itself works. */
export function openInferenceSettings({ config, envelope }: ModelStatus): OpenInferenceSettings {
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
