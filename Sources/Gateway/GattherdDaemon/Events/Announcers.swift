import GattherdModel

/// Several announcers as one, called in order.
struct Announcers: Announcer {
    private let all: [any Announcer]

    init(_ all: [any Announcer]) {
        self.all = all
    }

    func update(_ status: LinkStatus) {
        for announcer in all { announcer.update(status) }
    }

    func describe(_ device: DeviceDescription) {
        for announcer in all { announcer.describe(device) }
    }

    func remove(device: String) {
        for announcer in all { announcer.remove(device: device) }
    }

    func announce(_ event: LifecycleEvent) {
        for announcer in all { announcer.announce(event) }
    }
}
