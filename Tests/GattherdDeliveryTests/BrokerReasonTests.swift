import GattherdMachines
import Testing

@testable import GattherdDelivery

@Suite("BrokerReason")
struct BrokerReasonTests {
    @Test(
        "A refused CONNECT is told by who can mend it",
        arguments: [
            (0x86, .credentials), (0x87, .credentials), (0x8A, .credentials), (4, .credentials), (5, .credentials),
            (0x84, .session), (0x85, .session), (1, .session), (2, .session), (0x9D, .session), (0x9B, .session),
            (0x9A, .busy), (0x88, .busy),
            (0x89, .busy), (0x97, .busy), (3, .busy), (0xFF, .busy),
        ] as [(Int32, BrokerFault.Kind)]
    )
    func refusal(code: Int32, kind: BrokerFault.Kind) {
        #expect(BrokerReason(code: code).refusal.kind == kind)
    }

    @Test("A PUBACK is told by what is to be done")
    func verdicts() {
        #expect(BrokerReason(code: 0).verdict == .accepted)
        #expect(BrokerReason(code: 0x10).verdict == .noSubscribers)
        #expect(BrokerReason(code: 0x97).verdict == .busy("quota exceeded"))
        #expect(BrokerReason(code: 0x87).verdict == .refused("not authorized"))
        #expect(BrokerReason(code: 0x90).verdict == .refused("topic name invalid"))
    }

    @Test("A refusal without a reason is final when it was said for a minute", arguments: [0x80, 0x83] as [Int32])
    func vague(code: Int32) {
        let reason = BrokerReason(code: code)
        var refusals = VagueRefusals()
        #expect(refusals.verdict(reason, of: 1, at: .zero) == reason.verdict)
        #expect(refusals.verdict(reason, of: 2, at: .seconds(30)) == .busy(reason.words))
        #expect(refusals.verdict(reason, of: 2, at: .seconds(89)) == .busy(reason.words))
        #expect(refusals.verdict(reason, of: 2, at: .seconds(90)) == .refused(reason.words))
        #expect(refusals.verdict(BrokerReason(code: 0x97), of: 2, at: .seconds(100)) == .busy("quota exceeded"))
    }

    @Test("A client id that another client took is said as such")
    func takenOver() {
        #expect(BrokerReason(code: 0x8E).loss?.detail.contains("mqtt.client_id") == true)
        #expect(BrokerReason(code: 7).loss == nil)
    }
}
