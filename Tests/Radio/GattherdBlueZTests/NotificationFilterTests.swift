import GattherdBluetooth
import GattherdGATT
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdBlueZ

/// Signals in bluetoothd's order, and the values delivered from them.
@Suite struct NotificationFilterTests {
    /// The messages of bluetoothd, in order.
    private enum Message {
        case signal(UInt8)
        /// A message to another client, which only shows as a gap.
        case unseen
        /// Another message to us.
        case other
        /// A signal of another object.
        case otherSignal
        /// The answer to a read of ours.
        case answer(UInt8)
        /// No message has arrived for as long as decisions may wait.
        case deadline
    }

    private struct Row: CustomTestStringConvertible {
        let testDescription: String
        var isReadable = false
        /// True if no client had notifications before ours.
        var isAlone = true
        let messages: [Message]
        let notified: [UInt8]
        var read: [UInt8] = []

        init(
            _ description: String,
            isReadable: Bool = false,
            isAlone: Bool = true,
            _ messages: [Message],
            notified: [UInt8],
            read: [UInt8] = []
        ) {
            testDescription = description
            (self.isReadable, self.isAlone) = (isReadable, isAlone)
            (self.messages, self.notified, self.read) = (messages, notified, read)
        }
    }

    private static func signals(_ values: UInt8...) -> [Message] { values.map { .signal($0) } }

    private static let rows = [
        Row(
            "alone, equal notifications are all delivered",
            signals(1, 1, 2, 2, 2) + [.other],
            notified: [1, 1, 2, 2, 2]
        ),
        Row(
            "another client's copies are dropped",
            isAlone: false,
            signals(1, 1, 2, 2, 3, 3) + [.other],
            notified: [1, 2, 3]
        ),
        Row(
            "two other clients' copies are dropped",
            isAlone: false,
            signals(1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4) + [.other],
            notified: [1, 2, 3, 4]
        ),
        Row(
            "a client that joins is noticed",
            signals(1, 2) + [.unseen] + signals(3, 3, 4, 4, 5, 5, 6, 6) + [.other],
            notified: [1, 2, 3, 4, 5, 6]
        ),
        Row(
            "a client that leaves is noticed",
            isAlone: false,
            signals(1, 1, 2, 2, 3, 3) + [.unseen] + signals(4, 5, 5) + [.other],
            notified: [1, 2, 3, 4, 5, 5]
        ),
        Row(
            "a client that leaves without a message is noticed",
            isAlone: false,
            signals(1, 1, 2, 2, 3, 3, 4, 5, 5) + [.other],
            notified: [1, 2, 3, 4, 5, 5]
        ),
        Row(
            "after a gap, equal notifications before a single one were no copies",
            [.unseen] + signals(1, 1, 2) + [.other],
            notified: [1, 1, 2]
        ),
        Row(
            "many equal signals after a gap are notifications",
            [.unseen] + signals(1, 1, 1, 1, 1, 1, 1) + [.other, .deadline],
            notified: [1, 1, 1, 1, 1, 1, 1]
        ),
        Row(
            "a pair that nothing follows is decided in time",
            [.unseen] + signals(1, 1) + [.other, .deadline],
            notified: [1]
        ),
        Row(
            "with copies, equal notifications are all delivered",
            isAlone: false,
            signals(1, 1, 2, 2, 3, 3, 4, 4, 4, 4) + [.other],
            notified: [1, 2, 3, 4, 4]
        ),
        Row(
            "the value of another client's read may be no notification",
            isReadable: true,
            signals(1, 2) + [.unseen] + signals(3) + [.other],
            notified: [1, 3],
            read: [2]
        ),
        Row(
            "other objects' signals may come between a read value and its answer",
            isReadable: true,
            signals(1, 2) + [.otherSignal, .otherSignal, .unseen] + signals(3) + [.otherSignal, .other],
            notified: [1, 3],
            read: [2]
        ),
        Row(
            "other objects' signals may come between the value of our own read and its answer",
            isReadable: true,
            signals(1, 7) + [.otherSignal, .answer(7)] + signals(2) + [.other],
            notified: [1, 2]
        ),
        Row(
            "an equal signal after another object's signal is no copy",
            isAlone: false,
            signals(1, 1) + [.otherSignal] + signals(1, 1, 2, 2) + [.other, .deadline],
            notified: [1, 1, 2]
        ),
        Row(
            "what cannot be read is a notification, whatever follows",
            signals(1, 2) + [.unseen] + signals(3) + [.other],
            notified: [1, 2, 3]
        ),
        Row(
            "with copies, a single signal before a gap was read",
            isReadable: true,
            isAlone: false,
            signals(1, 1, 2, 2, 3, 3, 4) + [.unseen] + signals(5, 5) + [.other],
            notified: [1, 2, 3, 5],
            read: [4]
        ),
        Row(
            "with copies, a read of the value just notified is told apart",
            isReadable: true,
            isAlone: false,
            signals(1, 1, 2, 2, 3, 3, 3) + [.unseen] + signals(4, 4) + [.other],
            notified: [1, 2, 3, 4],
            read: [3]
        ),
        Row(
            "without evidence nothing is known of copies",
            isReadable: true,
            [.unseen] + signals(1, 1) + [.unseen, .other, .deadline] + signals(2, 2, 3, 3, 4, 4) + [.other, .deadline],
            notified: [1, 2, 3, 4],
            read: [1]
        ),
        Row(
            "the value of our own read is no notification",
            isReadable: true,
            signals(1, 7) + [.answer(7)] + signals(2) + [.other],
            notified: [1, 2]
        ),
        Row(
            "a notification during our own read is delivered",
            isReadable: true,
            signals(7, 7) + [.answer(7)] + signals(2) + [.other],
            notified: [7, 2]
        ),
        Row(
            "another value than the answer is a notification",
            isReadable: true,
            signals(6) + [.answer(7)] + signals(2) + [.other],
            notified: [6, 2]
        ),
    ]

    @Test(arguments: rows)
    private func `notifications, copies and read values are distinguished`(row: Row) {
        var sieve = NotificationFilter(isReadable: row.isReadable)
        var (order, serial) = (MessageOrder(), UInt32.max - 3)
        _ = order.record(serial)
        if row.isAlone { sieve.startAlone(at: order.gaps) }
        var delivered: [NotificationFilter.Delivery] = []
        func follows() -> Bool {
            serial = serial == .max ? 1 : serial + 1
            return order.record(serial)
        }
        for message in row.messages {
            switch message {
            case .signal(let octet):
                let isNext = follows()
                delivered += sieve.receive([octet], at: .init(microseconds: 1), follows: isNext, gaps: order.gaps)
            case .unseen: serial = serial == .max ? 1 : serial + 1
            case .otherSignal: if follows() { sieve.complete() } else { delivered += sieve.endRun(isAnswered: true) }
            case .other: delivered += sieve.endRun(isAnswered: !follows())
            case .answer(let octet):
                sieve.removeEcho(of: [octet])
                delivered += sieve.endRun(isAnswered: !follows())
            case .deadline: delivered += sieve.decide()
            }
        }
        delivered += sieve.flush()
        #expect(delivered.filter { !$0.mayBeRead }.flatMap(\.octets) == row.notified)
        #expect(delivered.filter(\.mayBeRead).flatMap(\.octets) == row.read)
    }

    @Test func `a decision is void once evidence has decided about its values`() {
        let loop = EventLoop(name: "test")
        defer { loop.stop() }
        let characteristic = RemoteCharacteristic(
            peripheral: Stage.peripheral,
            service: BluetoothUUID(0x180D),
            uuid: BluetoothUUID(0x2A37),
            handle: "",
            properties: [.read, .notify]
        )
        let channel = NotificationChannel(characteristic, path: "/", notifier: SinkNotifier(on: loop))
        channel.takesSignals = true
        func receive(_ octets: UInt8..., gaps: UInt64) {
            for (index, octet) in octets.enumerated() {
                let value = [octet]
                channel.receive(value.span, at: .init(microseconds: 1), follows: index > 0, gaps: gaps)
            }
        }
        receive(1, 1, 2, gaps: 1)
        #expect(channel.startDecision() == 1)
        #expect(channel.startDecision() == nil && channel.awaitsDecision(1))
        // The end of a run of one signal is evidence.
        channel.endRun(isAnswered: false)
        #expect(channel.startDecision() == nil && !channel.awaitsDecision(1))
        receive(3, 3, gaps: 2)
        channel.endRun(isAnswered: false)
        #expect(channel.startDecision() == 2)
        channel.decide(1)
        #expect(!channel.awaitsDecision(1) && channel.awaitsDecision(2))
        channel.decide(2)
        #expect(channel.startDecision() == nil && !channel.awaitsDecision(2))
    }

    @Test func `the signals that wait for proof are bounded`() {
        var sieve = NotificationFilter(isReadable: false)
        var delivered: [NotificationFilter.Delivery] = []
        for number in 0..<10_000 {
            let octets = [UInt8(number / 2_500)]
            delivered += sieve.receive(octets, at: .init(microseconds: 1), follows: true, gaps: 1)
        }
        #expect(delivered.count >= 9_000)
    }
}
