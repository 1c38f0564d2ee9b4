import type { Target } from '../target.ts'
import { gzip, manifest, modelConfig, tar, workflow, workflowManifest, zip, zipEntry } from './archives.ts'
import { form, multipart, openai, requestTarget, tensorMessage, tensors } from './bodies.ts'
import { properties } from './config.ts'
import { fromWorker, otf, toWorker } from './frames.ts'
import { metricLine, modelInfer, predictions } from './messages.ts'

/** Everything that is fuzzed in the fuzzer's own process. */
export const TARGETS: readonly Target[] = [
  ...[fromWorker, toWorker, otf],
  ...[multipart, form, requestTarget, openai, tensors, tensorMessage],
  ...[predictions, modelInfer, metricLine],
  ...[zip, zipEntry, tar, gzip, manifest, modelConfig, workflow, workflowManifest],
  properties,
]
