public import GattherdBluetooth
import GattherdGATT
public import GattherdModel

// The traits of peripherals, as Bluetooth reports them.

extension AdvertisedTraits {
    public init(_ advertisement: Advertisement) {
        self.init(name: advertisement.name, services: advertisement.services, advertisement.data)
    }

    public init(_ peripheral: PeripheralStatus) {
        self.init(name: peripheral.name, services: peripheral.services, peripheral.advertisement)
    }

    /// Creates the traits of the last advertisement of a sensor.
    init(_ advertisement: HeardAdvertisement) {
        var (companies, services): ([UInt16: [UInt8]], [BluetoothUUID: [UInt8]]) = ([:], [:])
        for frame in advertisement.frames {
            switch frame.source {
            case .manufacturer(let company): companies[company] = frame.octets
            case .serviceData(let uuid): services[uuid] = frame.octets
            }
        }
        self.init(name: advertisement.name, manufacturerData: companies, serviceData: services)
    }

    private init(name: String?, services: [BluetoothUUID], _ data: AdvertisementData) {
        self.init(
            name: name,
            services: services,
            manufacturerData: data.manufacturerData,
            serviceData: data.serviceData
        )
    }
}
