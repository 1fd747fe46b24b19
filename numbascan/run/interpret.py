from ..oracle.interpret import interpret as interpret
