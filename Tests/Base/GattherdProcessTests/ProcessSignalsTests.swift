import GattherdProcess
import Glibc
import Testing

@Suite struct ProcessSignalsTests {
    private func hasDefaultAction(_ number: Int32) -> Bool {
        var action = sigaction()
        guard unsafe sigaction(number, nil, &action) == 0 else { return false }
        return unsafe action.__sigaction_handler.sa_handler == nil
    }

    private func receive(_ number: Int32) async -> Int32? {
        let signals = ProcessSignals.stream(of: number)
        kill(getpid(), number)
        for await signal in signals { return signal }
        return nil
    }

    @Test(.timeLimit(.minutes(1))) func `a signal is caught until the stream ends`() async {
        #expect(await receive(SIGUSR2) == SIGUSR2)
        #expect(hasDefaultAction(SIGUSR2))
    }
}
