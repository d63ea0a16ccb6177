// SPDX-License-Identifier: MIT
// See confine.h. The seccomp filter lists forbidden calls instead of allowed ones, because it also applies to
// the configured commands, which may be any program.
#include "confine.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <grp.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace forktail::live::guard
{
namespace
{

constexpr int kRefused[] = {SCMP_SYS(ptrace),
			    SCMP_SYS(process_vm_readv),
			    SCMP_SYS(process_vm_writev),
			    SCMP_SYS(kcmp),
			    SCMP_SYS(bpf),
			    SCMP_SYS(perf_event_open),
			    SCMP_SYS(init_module),
			    SCMP_SYS(finit_module),
			    SCMP_SYS(delete_module),
			    SCMP_SYS(kexec_load),
			    SCMP_SYS(kexec_file_load),
			    SCMP_SYS(mount),
			    SCMP_SYS(umount2),
			    SCMP_SYS(fsopen),
			    SCMP_SYS(fsconfig),
			    SCMP_SYS(fsmount),
			    SCMP_SYS(fspick),
			    SCMP_SYS(move_mount),
			    SCMP_SYS(open_tree),
			    SCMP_SYS(mount_setattr),
			    SCMP_SYS(pivot_root),
			    SCMP_SYS(chroot),
			    SCMP_SYS(pidfd_getfd),
			    SCMP_SYS(setns),
			    SCMP_SYS(unshare),
			    SCMP_SYS(add_key),
			    SCMP_SYS(request_key),
			    SCMP_SYS(keyctl),
			    SCMP_SYS(userfaultfd),
			    SCMP_SYS(io_uring_setup),
			    SCMP_SYS(io_uring_enter),
			    SCMP_SYS(io_uring_register),
			    SCMP_SYS(personality),
			    SCMP_SYS(swapon),
			    SCMP_SYS(swapoff),
			    SCMP_SYS(reboot),
			    SCMP_SYS(acct),
			    SCMP_SYS(quotactl),
			    SCMP_SYS(vhangup),
			    SCMP_SYS(open_by_handle_at)};

bool BecomeOwner(const std::string &path, std::string *error)
{
	struct stat owner = {};
	if (geteuid() != 0 || stat(path.c_str(), &owner) != 0 || owner.st_uid == 0)
		return true;
	if (setgroups(0, nullptr) == 0 && setresgid(owner.st_gid, owner.st_gid, owner.st_gid) == 0 &&
	    setresuid(owner.st_uid, owner.st_uid, owner.st_uid) == 0)
		return true;
	*error = "cannot change to user " + std::to_string(owner.st_uid) + ", the owner of " + path + ": " +
		 strerror(errno);
	return false;
}

// Call it before the change of user, which removes the privilege to do it.
void DropBounds()
{
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

bool DropCapabilities()
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {};
	return syscall(SYS_capset, &header, none) == 0;
}

int Filter()
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err = filter ? 0 : -ENOMEM;
	for (const int call : kRefused)
		err = err ? err : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0);
	// New namespaces, in which a process has all capabilities. A filter cannot read clone3's flags:
	// without it the C library uses clone.
	for (const unsigned flag : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWPID, CLONE_NEWIPC,
				    CLONE_NEWUTS, CLONE_NEWCGROUP})
		err = err ? err
			  : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
					     SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
	err = err ? err : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	// The firewall's interface.
	err =
	    err ? err
		: seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 2,
				   SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, NETLINK_NETFILTER));
	err = err ? err : seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

} // namespace

bool Confine(const std::string &path, std::string *error)
{
	const struct rlimit none = {0, 0};
	DropBounds();
	if (!BecomeOwner(path, error))
		return false;
	umask(0077);
	setrlimit(RLIMIT_CORE, &none);
	if (!DropCapabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		*error = std::string("cannot drop privileges: ") + strerror(errno);
		return false;
	}
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (const int err = Filter()) {
		*error = std::string("cannot install the seccomp filter: ") + strerror(-err);
		return false;
	}
	return true;
}

} // namespace forktail::live::guard
