import { describe } from '@jest/globals'
import { findSandbox } from '../../frontend/workers/sandbox/support.ts'
import { modelFolder } from '../support/model-folder.ts'
import { testLeftProcesses } from './hostile/left-processes.ts'

const { perl } = await findSandbox()
const kept = perl === undefined ? describe.skip : describe

kept.each(['default', 'strict', 'off'])(
  'What a TypeScript handler started does not outlive its worker, sandbox=%s,',
  (sandbox) => {
    testLeftProcesses((name, config) => modelFolder(name, 'parent', config), { sandbox })
  },
)
