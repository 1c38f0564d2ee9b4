import { existsSync, readFileSync } from 'node:fs'

/** TorchServe's own handlers: the archive names them and holds no code. All are neural networks here. */
const STOCK_HANDLERS = ['image_classifier', 'object_detector', 'image_segmenter', 'text_classifier']

interface Replacement {
  /** A piece of the Python source that only this handler has. */
  readonly source: string
  /** In tests/torchserve/models. */
  readonly standIn: string
}

/** Python handlers of TorchServe's tests with a stand-in of the same behaviour. The first match counts. */
const REPLACEMENTS: readonly Replacement[] = [
  { source: 'send_intermediate_predict_response(["hello"]', standIn: 'echo-stream.ts' },
  { source: 'get_request_header(i, "url_path")', standIn: 'url-path.ts' },
  { source: 'class StreamingHandler(', standIn: 'completions.ts' },
  { source: 'self.context.stopping_criteria = [', standIn: 'stateful-continuous.ts' },
  { source: 'class StatefulHandler(', standIn: 'stateful.ts' },
  { source: 'class FooHandler(BaseHandler)', standIn: 'number.ts' },
  { source: 'metric_name="InferenceRequestCount"', standIn: 'mnist-metrics.ts' },
  { source: '(ImageClassifier):', standIn: 'recorded.ts' },
]

/** @param handler as the archiver is told: a stock name or a Python file */
export function standInFor(handler: string): string | undefined {
  if (STOCK_HANDLERS.includes(handler)) return 'recorded.ts'
  const path = existsSync(handler) ? handler : `${handler}.py`
  if (!path.endsWith('.py') || !existsSync(path)) return undefined
  const source = readFileSync(path, 'utf8')
  return REPLACEMENTS.find((replacement) => source.includes(replacement.source))?.standIn
}
