import { BaseHandler, type Context, type HandlerRequest } from 'torchserve-ts'

/** Reports metrics in every way that TorchServe's handlers have. */
export default class Meter extends BaseHandler {
  override initialize({ metrics }: Context): void {
    metrics.addMetricToCache('InferenceRequestCount', 'count')
    metrics.addMetric('InitializeCallCount', 1, 'count')
  }

  override async handle(requests: HandlerRequest[], { metrics, modelName }: Context): Promise<string[]> {
    metrics.getMetric('InferenceRequestCount')?.addOrUpdate(1)
    metrics.getMetric('RequestBatchSize', 'gauge')?.addOrUpdate(requests.length, [modelName])
    metrics.addSize('SizeOfImage', 1.5, 'kB')
    metrics.addTime('HandlerMethodTime', 3, 'ms', { MethodName: 'preprocess' })
    metrics.addPercent('ExamplePercentMetric', 50, undefined, 'histogram')
    metrics.addError('Mistakes', 1)
    console.log('a line of the handler')
    console.error('a line on stderr')
    return Promise.resolve(requests.map(() => 'done'))
  }
}
