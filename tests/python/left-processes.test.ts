import { describe } from '@jest/globals'
import { findSandbox } from '../../frontend/workers/sandbox/support.ts'
import { testLeftProcesses } from '../security/hostile/left-processes.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'

const { perl } = await findSandbox()
const kept = perl === undefined ? describe.skip : describe

await describePython('What a Python handler started', ({ python }) => {
  kept.each(['default', 'off'])('does not outlive its worker, sandbox=%s,', (sandbox) => {
    testLeftProcesses((name, config) => pythonFolder(name, 'parent', config), { python, sandbox })
  })
})
