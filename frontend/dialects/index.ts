import { openai } from './openai/rest.ts'
import { openInference } from './open-inference/rest.ts'
import type { RestDialect } from './rest-dialect.ts'
import { torchserve } from './torchserve/rest.ts'

/** All REST dialects, in the order in which a request is offered to them. */
export const REST_DIALECTS: readonly RestDialect[] = [openInference, torchserve, openai]
