import GattherdGATT
import GattherdMachines
import Testing

@Suite struct AdapterCandidateTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let rule: String
        let change: @Sendable (inout AdapterCandidate, inout AdapterCandidate) -> Void
        /// The one that is used: 1, 2, or 0 for none.
        let best: Int

        init(
            _ rule: String,
            _ best: Int,
            _ change: @escaping @Sendable (inout AdapterCandidate, inout AdapterCandidate) -> Void
        ) {
            self.rule = rule
            self.best = best
            self.change = change
        }

        var testDescription: String { rule }
    }

    static let rows = [
        Row("between equals the lower address decides", 1) { _, _ in },
        Row("the one that hears it better is used", 2) {
            $0.rssi = -80; $1.rssi = -60
        },
        Row("one that hears it is better than one that only knows it", 2) {
            $1.rssi = -89; _ = $0
        },
        Row("three failures weigh more than 20 dB", 2) {
            $0.rssi = -50; $0.failures = 3; $1.rssi = -70
        },
        Row("between equals the one with less to do is used", 2) {
            $0.load = 40; $1.load = 39
        },
        Row("load does not drive a device to where it is hardly heard", 1) {
            $0.load = 50
            $0.rssi = -50
            $1.rssi = -80
        },
        Row("a full one is not used, however well it hears", 2) {
            $0.hasRoom = false; $0.rssi = -30; $1.rssi = -95
        },
        Row("a link that is there already is kept, also on a full one", 1) {
            $0.isConnected = true
            $0.hasRoom = false
            $0.failures = 9
            $1.rssi = -30
        },
        Row("when all are full none is used", 0) {
            $0.hasRoom = false; $1.hasRoom = false
        },
    ]

    @Test("Choices", arguments: rows)
    func choice(row: Row) throws {
        var one = AdapterCandidate(address: try #require(BluetoothAddress("00:00:00:00:00:01")))
        var other = AdapterCandidate(address: try #require(BluetoothAddress("00:00:00:00:00:02")))
        row.change(&one, &other)
        let expected = [nil, one, other][row.best]
        #expect(AdapterCandidate.best(of: [one, other]) == expected)
        #expect(AdapterCandidate.best(of: [other, one]) == expected, "the order does not matter")
    }
}
