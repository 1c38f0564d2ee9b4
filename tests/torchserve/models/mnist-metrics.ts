import type { Context, HandlerRequest, HandlerResponse, Metric } from 'torchserve-ts'
import RecordedNetwork from './recorded.ts'

/** The handler of examples/custom_metrics: MNIST that reports a metric through each way that there is. */
export default class MeasuredNetwork extends RecordedNetwork {
  #requests: Metric | undefined

  override async initialize(context: Context): Promise<void> {
    await super.initialize(context)
    const { metrics } = context
    this.#requests = metrics.addMetricToCache('InferenceRequestCount', 'count')
    metrics.addMetricToCache('PreprocessCallCount', 'count', ['ModelName'])
    metrics.addMetric('InitializeCallCount', 1, 'count')
  }

  override preprocess(requests: HandlerRequest[], context: Context): Buffer[] {
    const start = performance.now()
    const { metrics, modelName } = context
    this.#requests?.addOrUpdate(1)
    metrics.getMetric('PreprocessCallCount')?.addOrUpdate(1, [modelName])
    metrics.getMetric('RequestBatchSize', 'gauge')?.addOrUpdate(requests.length, [modelName])
    const inputs = super.preprocess(requests)
    metrics.addSize('SizeOfImage', inputs[0]!.length / 1024, 'kB')
    metrics.addTime('HandlerMethodTime', performance.now() - start, 'ms', { MethodName: 'preprocess' })
    return inputs
  }

  override postprocess(output: unknown, context: Context): HandlerResponse[] {
    context.metrics.addCounter('PostprocessCallCount', 1)
    context.metrics.addPercent('ExamplePercentMetric', 50, {}, 'histogram')
    return output as HandlerResponse[]
  }
}
