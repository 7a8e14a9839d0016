import GattherdMQTT
import GattherdMachines
import Glibc
import TestKit
import Testing

@testable import GattherdDelivery

@Suite struct MQTTReasonTests {
    @Test(
        arguments: [
            (0x86, .credentials), (0x87, .credentials), (0x8A, .credentials), (4, .credentials), (5, .credentials),
            (0x84, .session), (0x85, .session), (1, .session), (2, .session), (0x9D, .session), (0x9B, .session),
            (0x9A, .busy), (0x88, .busy),
            (0x89, .busy), (0x97, .busy), (3, .busy), (0xFF, .busy),
        ] as [(UInt8, BrokerFault.Kind)]
    )
    func `a refused CONNECT maps to the fault with its remedy`(code: UInt8, kind: BrokerFault.Kind) {
        #expect(MQTTReason(returnCode: code).refusal().kind == kind)
    }

    @Test func `the reason of a PUBACK decides what happens to its reading`() {
        #expect(MQTTReason(rawValue: 0).verdict == .accepted)
        #expect(MQTTReason(rawValue: 0x10).verdict == .noSubscribers)
        #expect(MQTTReason(rawValue: 0x97).verdict == .busy("quota exceeded"))
        #expect(MQTTReason(rawValue: 0x87).verdict == .refused("not authorized"))
        #expect(MQTTReason(rawValue: 0x90).verdict == .refused("topic name invalid"))
    }

    @Test(arguments: [0x80, 0x83] as [UInt8])
    func `a reading is skipped when the broker refuses it without a reason for a minute`(code: UInt8) {
        let reason = MQTTReason(rawValue: code)
        var topics = BusyTopics(timeout: .seconds(60))
        #expect(topics.verdict(reason, on: "a", at: .zero) == .reading(.busy(reason.words)))
        #expect(topics.verdict(reason, on: "b", at: .seconds(30)) == .reading(.busy(reason.words)))
        #expect(topics.verdict(reason, on: "b", at: .seconds(89)) == .reading(.busy(reason.words)))
        #expect(topics.verdict(reason, on: "b", at: .seconds(90)) == .reading(.refused(reason.words)))
    }

    @Test func `a topic is refused when it stays busy while the broker accepts another one`() {
        let busy = MQTTReason(rawValue: 0x97)
        var topics = BusyTopics(timeout: .seconds(60))
        #expect(topics.verdict(busy, on: "a", at: .zero) == .reading(.busy(busy.words)))
        #expect(topics.verdict(busy, on: "a", at: .seconds(600)) == .reading(.busy(busy.words)))
        #expect(topics.verdict(.success, on: "b", at: .seconds(601)) == .reading(.accepted))
        #expect(topics.verdict(busy, on: "a", at: .seconds(602)) == .topicRefused(busy.words))
    }

    @Test func `busy answers of an earlier session do not count`() {
        let busy = MQTTReason(rawValue: 0x97)
        var topics = BusyTopics(timeout: .seconds(60))
        #expect(topics.verdict(busy, on: "a", at: .zero) == .reading(.busy(busy.words)))
        topics.recordAcceptance(of: "b")
        topics.startSession()
        #expect(topics.verdict(busy, on: "a", at: .seconds(600)) == .reading(.busy(busy.words)))
        topics.recordAcceptance(of: "b")
        #expect(topics.verdict(busy, on: "a", at: .seconds(659)) == .reading(.busy(busy.words)))
        #expect(topics.verdict(busy, on: "a", at: .seconds(660)) == .topicRefused(busy.words))
    }

    @Test func `a client id that another client takes over is reported as the cause`() {
        #expect(MQTTReason(rawValue: 0x8E).loss()?.detail.contains("mqtt.client_id") == true)
        #expect(MQTTReason(rawValue: 7).loss() == nil)
    }

    @Test func `a broker is down if it says that it stops, or if the host of its last session refuses`() throws {
        #expect(MQTTReason(rawValue: 0x8B).loss()?.wasBrokerDown == true)
        #expect(MQTTReason(rawValue: 0x89).loss()?.wasBrokerDown == false)
        let port = UInt16(try Broker().port)
        let settings = DeliverySettings(gateway: "lab", host: "127.0.0.1", port: port)
        for last in ["127.0.0.1", "::1", nil] {
            let fault = #expect(throws: BrokerFault.self) { try settings.dial(first: 0, last: last) }
            #expect(fault?.wasBrokerDown == (last == "127.0.0.1"))
        }
    }

    @Test func `another address of the broker does not show whether the broker was down`() {
        let error = DialError.unconnected(.system(ETIMEDOUT), address: "192.0.2.1", refusing: ["2001:db8::1"])
        #expect(error.isRefused(at: "2001:db8::1"))
        #expect(!error.isRefused(at: "192.0.2.1") && !DialError.noAddress.isRefused(at: "192.0.2.1"))
    }
}
