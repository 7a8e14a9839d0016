import GattherdGATT
import Testing

struct BluetoothUUIDTests {
    @Test func `all forms of an assigned number are equal`() {
        let uuid: BluetoothUUID = 0x180D
        for text in ["180d", "0x180D", "0000180d", "0000180D-0000-1000-8000-00805f9b34fb"] {
            #expect(BluetoothUUID(text) == uuid)
        }
        #expect(uuid == 0x0000180d_0000_1000_8000_00805f9b34fb)
        #expect(uuid.description == "180d" && uuid.canonical == "0000180d-0000-1000-8000-00805f9b34fb")
    }

    @Test func `two halves make a vendor UUID`() {
        let uuid = BluetoothUUID(high: 0x7a4b_bfe6_999f_4717, low: 0xb63a_066e_0697_1f59)
        #expect(uuid.canonical == "7a4bbfe6-999f-4717-b63a-066e06971f59")
        #expect(BluetoothUUID("7A4BBFE6-999F-4717-B63A-066E06971F59") == uuid)
        #expect(uuid.assignedName == nil && uuid.assigned16 == nil)
        #expect(uuid == 0x7a4bbfe6_999f_4717_b63a_066e06971f59)
    }

    @Test(arguments: ["", "18", "180g", "180d ", "+180", "7a4bbfe6999f4717b63a066e06971f59"])
    func `invalid UUID texts give nil`(text: String) {
        #expect(BluetoothUUID(text) == nil)
    }

    @Test(
        arguments: [
            (0x180D, "Heart Rate"), (0x2A37, "Heart Rate Measurement"), (0x2904, "Characteristic Presentation Format"),
            (0x2B8C, "CO2 Concentration"), (0xFFF0, nil),
        ] as [(UInt16, String?)]
    )
    func `assigned numbers have names`(number: UInt16, name: String?) {
        #expect(BluetoothUUID(number).assignedName == name)
    }
}
