import * as z from 'zod'
import { issueText } from '../../../common/json.ts'

const name = z.string('must be a non-empty string').regex(/\S/, 'must be a non-empty string')

const names = z
  .array(name, 'must be a list of names')
  .refine((list) => new Set(list).size === list.length, 'must not contain a name twice')

const metric = z.strictObject({ name, unit: name, dimensions: names.nullish() }, 'must be a map')

const metrics = z.array(metric, 'must be a list').nullish()

const section = z
  .strictObject({ counter: metrics, gauge: metrics, histogram: metrics }, 'must be a map')
  .superRefine((lists, context) => {
    const declared = Object.values(lists).flatMap((list) => list?.map((each) => each.name) ?? [])
    const twice = declared.find((each, at) => declared.indexOf(each) !== at)
    if (twice !== undefined) context.addIssue(`must not declare ${twice} twice`)
  })
  .nullish()

const metricsFile = z.strictObject(
  { dimensions: names.optional(), ts_metrics: section, model_metrics: section },
  'must be a map',
)

/** Content of a metrics.yaml, in the form of TorchServe's ts/configs/metrics.yaml. */
export type MetricsFile = z.infer<typeof metricsFile>

/** @throws TypeError with the place and what it must be */
export function checkMetricsFile(content: unknown): MetricsFile {
  const result = metricsFile.safeParse(content)
  if (result.success) return result.data
  throw new TypeError(issueText(result.error.issues, 'the file'))
}
