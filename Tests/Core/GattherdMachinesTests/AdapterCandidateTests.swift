import GattherdGATT
import GattherdMachines
import Testing

@Suite struct AdapterCandidateTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let rule: String
        let change: @Sendable (inout AdapterCandidate, inout AdapterCandidate) -> Void
        /// The number of the expected adapter: 1, 2, or 0 for none.
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
        Row("the lower address wins between equals", 1) { _, _ in },
        Row("the adapter with the stronger signal wins", 2) {
            $0.rssi = -80; $1.rssi = -60
        },
        Row("an adapter that hears the device beats one that only knows it", 2) {
            $1.rssi = -89; _ = $0
        },
        Row("three failures weigh more than 20 dB", 2) {
            $0.rssi = -50; $0.failures = 3; $1.rssi = -70
        },
        Row("the lower load wins between equals", 2) {
            $0.load = 40; $1.load = 39
        },
        Row("load does not outweigh a very weak signal", 1) {
            $0.load = 50
            $0.rssi = -50
            $1.rssi = -80
        },
        Row("a full adapter is not used, however strong the signal", 2) {
            $0.hasRoom = false; $0.rssi = -30; $1.rssi = -95
        },
        Row("an existing link is kept, even on a full adapter", 1) {
            $0.isConnected = true
            $0.hasRoom = false
            $0.failures = 9
            $1.rssi = -30
        },
        Row("no adapter is used if all are full", 0) {
            $0.hasRoom = false; $1.hasRoom = false
        },
    ]

    @Test(arguments: rows)
    func `the best adapter is that with the link, else one with room and the best score`(row: Row) throws {
        var one = AdapterCandidate(address: try #require(BluetoothAddress("00:00:00:00:00:01")))
        var other = AdapterCandidate(address: try #require(BluetoothAddress("00:00:00:00:00:02")))
        row.change(&one, &other)
        let expected = [nil, one, other][row.best]
        #expect(AdapterCandidate.best(of: [one, other]) == expected)
        #expect(AdapterCandidate.best(of: [other, one]) == expected, "the order does not matter")
    }
}
