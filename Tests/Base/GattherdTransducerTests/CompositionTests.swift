import GattherdTransducer
import Testing

@testable import TransducerExamples

@Suite struct CompositionTests {
    /// Doubles each saved number of a counter, and finishes above 4.
    private struct Doubler: Transducer {
        private(set) var output = 0
        var isFinished: Bool { output > 4 }

        mutating func handle(_ event: Counter.Effect, at now: Duration) -> [Int] {
            if case .save(let number) = event { output = number * 2 }
            return [output]
        }
    }

    @Test func `a pair sends each event to its half`() {
        var pair = TransducerPair(Counter(), Throttle<Int>())
        guard case .first(.save(1))? = pair.handle(.first(.increment), at: .zero).first else {
            Issue.record("the counter has no effect")
            return
        }
        guard case .second(.write(3))? = pair.handle(.second(.set(3)), at: .zero).first else {
            Issue.record("the throttle has no effect")
            return
        }
        #expect(pair.output == .init(first: 1, second: 3))
    }

    @Test func `the deadline of a pair is the earlier one, and only its half gets the tick`() {
        var pair = TransducerPair(Throttle<Int>(interval: .seconds(1)), Throttle<Int>(interval: .seconds(2)))
        for value in [1, 2] {
            _ = pair.handle(.first(.set(value)), at: .zero)
            _ = pair.handle(.second(.set(value)), at: .zero)
        }
        _ = pair.handle(.first(.written), at: .zero)
        _ = pair.handle(.second(.written), at: .zero)
        #expect(pair.deadline == .seconds(1))
        let effects = pair.handle(.tick, at: .seconds(1))
        #expect(effects.count == 1)
        guard case .first(.write(2))? = effects.first else {
            Issue.record("\(effects)")
            return
        }
    }

    @Test func `a pair is finished when both halves are`() {
        var pair = TransducerPair(Counter(), Counter())
        _ = pair.handle(.first(.stop), at: .zero)
        #expect(pair.handle(.first(.increment), at: .zero).isEmpty)
        #expect(!pair.isFinished)
        _ = pair.handle(.second(.stop), at: .zero)
        #expect(pair.isFinished)
    }

    @Test func `the effects of the first of a chain are the events of the second`() {
        var chain = TransducerChain(Counter(), into: Doubler())
        #expect(chain.handle(.event(.increment), at: .zero) == [2])
        #expect(chain.handle(.event(.increment), at: .zero) == [4])
        #expect(!chain.isFinished)
        #expect(chain.handle(.event(.increment), at: .zero) == [6])
        #expect(chain.isFinished)
        #expect(chain.output == 6)
    }
}
