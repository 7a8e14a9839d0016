import GattherdMQTT
import GattherdMachines
import Testing

@testable import GattherdDelivery

@Suite("MQTTReason")
struct MQTTReasonTests {
    @Test(
        "A refused CONNECT is told by who can mend it",
        arguments: [
            (0x86, .credentials), (0x87, .credentials), (0x8A, .credentials), (4, .credentials), (5, .credentials),
            (0x84, .session), (0x85, .session), (1, .session), (2, .session), (0x9D, .session), (0x9B, .session),
            (0x9A, .busy), (0x88, .busy),
            (0x89, .busy), (0x97, .busy), (3, .busy), (0xFF, .busy),
        ] as [(UInt8, BrokerFault.Kind)]
    )
    func refusal(code: UInt8, kind: BrokerFault.Kind) {
        #expect(MQTTReason(returnCode: code).refusal().kind == kind)
    }

    @Test("A PUBACK is told by what is to be done")
    func verdicts() {
        #expect(MQTTReason(rawValue: 0).verdict == .accepted)
        #expect(MQTTReason(rawValue: 0x10).verdict == .noSubscribers)
        #expect(MQTTReason(rawValue: 0x97).verdict == .busy("quota exceeded"))
        #expect(MQTTReason(rawValue: 0x87).verdict == .refused("not authorized"))
        #expect(MQTTReason(rawValue: 0x90).verdict == .refused("topic name invalid"))
    }

    @Test("A refusal without a reason is final when it was said for a minute", arguments: [0x80, 0x83] as [UInt8])
    func vague(code: UInt8) {
        let reason = MQTTReason(rawValue: code)
        var refusals = UnexplainedRefusals()
        #expect(refusals.verdict(reason, of: 1, at: .zero) == reason.verdict)
        #expect(refusals.verdict(reason, of: 2, at: .seconds(30)) == .busy(reason.words))
        #expect(refusals.verdict(reason, of: 2, at: .seconds(89)) == .busy(reason.words))
        #expect(refusals.verdict(reason, of: 2, at: .seconds(90)) == .refused(reason.words))
        #expect(refusals.verdict(MQTTReason(rawValue: 0x97), of: 2, at: .seconds(100)) == .busy("quota exceeded"))
    }

    @Test("A client id that another client took is said as such")
    func takenOver() {
        #expect(MQTTReason(rawValue: 0x8E).loss()?.detail.contains("mqtt.client_id") == true)
        #expect(MQTTReason(rawValue: 7).loss() == nil)
    }
}
